package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"sidetone/internal/stamp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)

func TestHeadersOfAFiring(t *testing.T) {
	target := Target{URL: "http://h/", Method: "PUT", Secret: "s3cret", Headers: map[string]string{"x-team": "voice", "CONTENT-TYPE": "text/plain",
		"x-alert-rule-id": "forged", "X-Alert-Anything": "forged", "user-agent": "mine"}}
	r := NewRequest(target, Message{ID: "f", RuleID: "r", FiringID: "f", Body: []byte("the body")}, noon)
	mac := hmac.New(sha256.New, []byte("s3cret"))
	mac.Write([]byte("the body"))
	want := map[string]string{"Content-Type": "application/json", "X-Alert-Rule-Id": "r", "X-Alert-Firing-Id": "f", "X-Team": "voice", "User-Agent": "mine",
		"X-Alert-Signature": "sha256=" + hex.EncodeToString(mac.Sum(nil))}
	if !maps.Equal(r.Header, want) || r.Method != "PUT" || r.URL != "http://h/" || string(r.Body) != "the body" {
		t.Errorf("got %+v, want headers %v", r, want)
	}
}

// The vector is the example of RFC 4231, test case 2: it comes from nobody's code.
func TestSignatureVector(t *testing.T) {
	got := Signature("Jefe", []byte("what do ya want for nothing?"))
	if want := "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAnUnsignedTest(t *testing.T) {
	r := NewRequest(Target{Headers: map[string]string{"X-Alert-Signature": "sha256=forged", "X-Alert-Firing-Id": "forged"}}, Message{ID: "a", RuleID: "r"}, noon)
	if want := map[string]string{"Content-Type": "application/json", "X-Alert-Rule-Id": "r"}; !maps.Equal(r.Header, want) {
		t.Errorf("headers %v, want %v", r.Header, want)
	}
}

func TestStandardWebhooks(t *testing.T) {
	key := []byte("0123456789abcdefghijklmn+/")
	for _, secret := range []string{"whsec_" + base64.StdEncoding.EncodeToString(key), "whsec_" + base64.RawStdEncoding.EncodeToString(key)} {
		r := NewRequest(Target{Secret: secret, Headers: map[string]string{"webhook-id": "forged", "Webhook-Signature": "forged"}},
			Message{ID: "f", RuleID: "r", FiringID: "f", Body: []byte(`{"a":1}`)}, noon)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "f.%d.%s", noon.Unix(), `{"a":1}`)
		for name, want := range map[string]string{"Webhook-Id": "f", "Webhook-Timestamp": fmt.Sprint(noon.Unix()),
			"Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), "X-Alert-Signature": Signature(secret, []byte(`{"a":1}`))} {
			if r.Header[name] != want {
				t.Errorf("%s: %q, want %q", name, r.Header[name], want)
			}
		}
	}
	for _, secret := range []string{"", "plain", "whsec_", "whsec_%%%", "WHSEC_AAAA"} {
		r := NewRequest(Target{Secret: secret}, Message{ID: "f"}, noon)
		if _, there := r.Header["Webhook-Signature"]; there {
			t.Errorf("secret %q has a Standard Webhooks signature", secret)
		}
	}
}

func TestPayloads(t *testing.T) {
	body, err := testBody("id", `<n> & "ü"`, "latency_stt_p95", noon)
	if want := `{"type":"alert.test","rule":{"id":"id","name":"<n> & \"ü\"","metric":"latency_stt_p95"},"fired_at":"2026-11-21T12:00:00.123Z"}`; err != nil || string(body) != want {
		t.Errorf("%s, %v\nwant %s", body, err, want)
	}
	total, judge, agent := int64(3), "tone", "a"
	body, err = Triggered{FiringID: "f", Rule: TriggeredRule{"id", "n", "eval_fail_rate", &judge, 0.3, 15}, Window: Window{stamp.Of(noon.Add(-time.Hour)), stamp.Of(noon)},
		MatchedCount: 2, TotalCount: &total, ObservedValue: 0.5, AgentID: &agent, FiredAt: stamp.Of(noon)}.Body()
	if want := `{"type":"alert.triggered","firing_id":"f","rule":{"id":"id","name":"n","metric":"eval_fail_rate","judge_name":"tone","threshold_value":0.3,"window_minutes":15},` +
		`"window":{"start":"2026-11-21T11:00:00.123Z","end":"2026-11-21T12:00:00.123Z"},"matched_count":2,"total_count":3,"observed_value":0.5,"agent_id":"a","account_id":null,` +
		`"sample_session_ids":[],"fired_at":"2026-11-21T12:00:00.123Z"}`; err != nil || string(body) != want {
		t.Errorf("%s, %v\nwant %s", body, err, want)
	}
}

func TestNextAttempt(t *testing.T) {
	for attempt, want := range map[int]time.Duration{0: 30 * time.Second, 1: 30 * time.Second, 2: 2 * time.Minute, 3: 10 * time.Minute, 4: 30 * time.Minute, 5: 2 * time.Hour} {
		if next, more := NextAttempt(attempt, noon); !more || next.Sub(noon) != want {
			t.Errorf("after attempt %d: %v, %v", attempt, next.Sub(noon), more)
		}
	}
	for _, attempt := range []int{6, 7, 100} {
		if _, more := NextAttempt(attempt, noon); more {
			t.Errorf("there is another attempt after number %d", attempt)
		}
	}
}

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	var ids []string
	for range 1000 {
		id := NewID()
		if !form.MatchString(id) {
			t.Fatalf("%s is not a version 4 UUID", id)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 1000 {
		t.Error("ids repeat")
	}
}

func TestHostOf(t *testing.T) {
	for url, want := range map[string]string{"http://Example.com/a": "example.com:http", "https://example.com": "example.com:https", "http://example.com:80/": "example.com:80",
		"http://u:p@h:1/": "h:1", "http://[::1]:8080/": "[::1]:8080", "::": "::"} {
		if got := hostOf(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

func TestCleanText(t *testing.T) {
	for text, want := range map[string]string{"fine": "fine", "a\x00b": "a?b", "a\xffb": "a?b"} {
		if got := cleanText(text); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	long := "a"
	for range 400 {
		long += "é"
	}
	if got := cleanText(long); len(got) != 499 || got != long[:499] {
		t.Errorf("cut to %d bytes", len(got))
	}
}
