package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	user, pass     = "observer", "pass:word ü"
	apiKey, secret = "APIsidetone", "a-secret-of-the-media-server-0123456789"
)

var (
	basicPair   = []string{"AGENT_OBSERVABILITY_USER=" + user, "AGENT_OBSERVABILITY_PASS=" + pass}
	livekitPair = []string{"LIVEKIT_API_KEY=" + apiKey, "LIVEKIT_API_SECRET=" + secret}
)

func basic(user, pass string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+pass))
}

// token is what the LiveKit SDKs send, changed by edit when it is not nil.
func token(t *testing.T, secret string, edit func(jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": apiKey, "nbf": time.Now().Unix(), "exp": time.Now().Add(6 * time.Hour).Unix(),
		"observability": map[string]any{"write": true}}
	if edit != nil {
		edit(claims)
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + signed
}

// TestAccess walks through the whole table of shared/api.md "Auth".
func TestAccess(t *testing.T) {
	t.Parallel()
	open := []string{"GET /health", "GET /ready"}
	ingest := []string{"POST /observability/recordings/v0", "POST //observability/recordings/v0", "POST /observability/evals/v0"}
	for _, signal := range []string{"logs", "traces", "metrics"} {
		ingest = append(ingest, "POST /observability/"+signal+"/otlp/v0", "POST /v1/"+signal)
	}
	read := []string{"GET /api/sessions", "GET /api/sessions/x", "GET /api/sessions/x/recording", "GET /api/sessions/x/spans",
		"DELETE /api/sessions", "GET /api/evals", "GET /api/evals/x", "GET /api/alert-rules", "POST /api/alert-rules",
		"GET /api/alerts/webhook-attempts", "GET /api/no-such-route", "GET /", "GET /sessions", "GET /metrics", "GET /openapi.json", "GET /docs"}

	good := map[string]string{"basic": basic(user, pass), "bearer": token(t, secret, nil), "none": ""}
	bad := []string{basic(user, "wrong"), basic("wrong", pass), basic(user, ""), "Basic", "Basic ???", "Bearer", "Bearer x.y.z",
		token(t, "another-secret-of-the-media-server", nil),
		token(t, secret, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() }),
		token(t, secret, func(c jwt.MapClaims) { delete(c, "exp") }),
		token(t, secret, func(c jwt.MapClaims) { c["iss"] = "another" }),
		token(t, secret, func(c jwt.MapClaims) { c["observability"] = map[string]any{"write": false} }),
		token(t, secret, func(c jwt.MapClaims) { delete(c, "observability") })}

	for _, c := range []struct {
		name         string
		settings     []string
		ingest, read []string // the credentials that open the routes; nil: none needed
	}{
		{"nothing set", nil, nil, nil},
		{"basic", basicPair, []string{"basic"}, []string{"basic"}},
		{"livekit", livekitPair, []string{"bearer"}, nil},
		{"both", append(append([]string{}, basicPair...), livekitPair...), []string{"basic", "bearer"}, []string{"basic"}},
		{"half a pair each", []string{basicPair[0], livekitPair[1]}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, sqliteURL(t), c.settings...)
			for _, class := range []struct {
				routes, accepted []string
			}{{open, nil}, {ingest, c.ingest}, {read, c.read}} {
				for _, route := range class.routes {
					for kind, value := range good {
						admitted := class.accepted == nil || strings.Contains(strings.Join(class.accepted, " "), kind)
						checkAdmission(t, s, route, kind, value, admitted)
					}
					for i, value := range bad {
						checkAdmission(t, s, route, fmt.Sprint("bad ", i), value, class.accepted == nil)
					}
				}
			}
			// What an SDK is told must never look like the gate that makes it stop uploading (livekit-wire.md 3).
			for _, line := range strings.Split(s.Log(), "\n") {
				if strings.Contains(line, secret) || strings.Contains(line, pass) {
					t.Errorf("the log shows a secret: %s", line)
				}
			}
		})
	}
}

func checkAdmission(t *testing.T, s *server, route, kind, credentials string, admitted bool) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	header := map[string]string{"Content-Type": "application/json"}
	if credentials != "" {
		header["Authorization"] = credentials
	}
	r := s.do(method, path, header, strings.NewReader("{"))
	if (r.status != 401) != admitted {
		t.Errorf("%s with %s credentials: %d, admitted should be %v", route, kind, r.status, admitted)
		return
	}
	if admitted {
		if r.status >= 500 {
			t.Errorf("%s with %s credentials: %d %s", route, kind, r.status, r.body)
		}
		return
	}
	wantError(t, route, r, 401, "unauthorized")
	if len(r.header.Values("WWW-Authenticate")) == 0 {
		t.Errorf("%s: a 401 without WWW-Authenticate", route)
	}
	for _, gate := range []string{"disabled by owner", "data recording is disabled"} {
		if strings.Contains(strings.ToLower(string(r.body)), gate) {
			t.Errorf("%s: the 401 makes SDKs stop: %s", route, r.body)
		}
	}
}

func TestUploadWithCredentials(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t), append(append([]string{}, basicPair...), livekitPair...)...)
	reading := map[string]string{"Authorization": basic(user, pass)}
	for i, credentials := range []string{basic(user, pass), token(t, secret, nil),
		token(t, secret, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-30 * time.Second).Unix() })} { // clocks differ
		contentType, body := numbered(10 + i).multipart()
		r := s.do("POST", ingestPath, map[string]string{"Content-Type": contentType, "Authorization": credentials}, strings.NewReader(string(body)))
		if r.status != 200 {
			t.Errorf("upload %d: %d %s", i, r.status, r.body)
		}
	}
	contentType, body := numbered(9).multipart()
	if r := s.post(contentType, body); r.status != 401 {
		t.Errorf("without credentials: %d", r.status)
	}
	list := s.do("GET", "/api/sessions", reading, nil)
	want(t, decode(t, list.body), map[string]any{"meta.total_count": 3})
	if f := s.files(); len(f) != 1 { // only number 12 has a recording; number 9 has one too but was refused
		t.Errorf("recordings: %v", f)
	}
}

// TestSecretsFromFiles reads a password from a file, as orchestrators hand them out.
func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir+"/pass", pass+"\n")
	s := start(t, sqliteURL(t), basicPair[0], "AGENT_OBSERVABILITY_PASS_FILE="+dir+"/pass")
	if r := s.get("/api/sessions"); r.status != 401 {
		t.Errorf("without credentials: %d", r.status)
	}
	if r := s.do("GET", "/api/sessions", map[string]string{"Authorization": basic(user, pass)}, nil); r.status != 200 {
		t.Errorf("with credentials: %d %s", r.status, r.body)
	}
}

// TestOtherOrigins sends what browsers send for pages of other origins.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	const allowed, foreign = "https://app.example.com", "https://evil.example"
	s := start(t, sqliteURL(t), append([]string{"CORS_ALLOWED_ORIGINS=" + allowed}, basicPair...)...)
	r := numbered(2)
	contentType, body := r.multipart()
	signed := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": basic(user, pass), "Content-Type": "application/json"}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	if got := s.do("POST", ingestPath, signed("Content-Type", contentType), strings.NewReader(string(body))); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	remove := func(header map[string]string) reply {
		return s.do("DELETE", "/api/sessions", header, strings.NewReader(`{"session_ids":["`+r.id+`"]}`))
	}
	for name, header := range map[string]map[string]string{
		"an origin":           signed("Origin", foreign),
		"a site":              signed("Sec-Fetch-Site", "cross-site"),
		"a neighbouring site": signed("Sec-Fetch-Site", "same-site", "Origin", "https://other.example.com"),
		"an opaque origin":    signed("Origin", "null", "Sec-Fetch-Site", "cross-site"),
	} {
		if got := remove(header); got.status != 403 {
			t.Errorf("DELETE from %s: %d %s", name, got.status, got.body)
		}
		if got := s.do("POST", "/api/alert-rules", header, strings.NewReader("{}")); got.status != 403 {
			t.Errorf("POST from %s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.do("GET", "/api/sessions", signed("Origin", foreign, "Sec-Fetch-Site", "cross-site"), nil); got.status != 200 ||
		got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign page may read: %d %v", got.status, got.header)
	}
	if got := s.do("OPTIONS", "/api/sessions", map[string]string{"Origin": foreign, "Access-Control-Request-Method": "DELETE"}, nil); got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("preflight from a foreign page: %d %v", got.status, got.header)
	}

	preflight := s.do("OPTIONS", "/api/sessions", map[string]string{"Origin": allowed, "Access-Control-Request-Method": "DELETE",
		"Access-Control-Request-Headers": "authorization,content-type"}, nil)
	if preflight.status != 204 || preflight.header.Get("Access-Control-Allow-Origin") != allowed ||
		!strings.Contains(preflight.header.Get("Access-Control-Allow-Methods"), "DELETE") ||
		!strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", preflight.status, preflight.header)
	}
	got := s.do("GET", "/api/sessions", signed("Origin", allowed, "Sec-Fetch-Site", "cross-site"), nil)
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != allowed || !strings.Contains(strings.Join(got.header.Values("Vary"), ","), "Origin") {
		t.Errorf("reading from the allowed page: %d %v", got.status, got.header)
	}
	if got := s.do("GET", "/api/sessions", map[string]string{"Origin": allowed}, nil); got.status != 401 || got.header.Get("Access-Control-Allow-Origin") != allowed {
		t.Errorf("the allowed page without a password: %d %v", got.status, got.header)
	}
	if got := remove(signed("Origin", allowed, "Sec-Fetch-Site", "cross-site")); got.status != 200 {
		t.Errorf("DELETE from the allowed page: %d %s", got.status, got.body)
	}
}
