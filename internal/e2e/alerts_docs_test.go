package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const alertExamples = "../../docs/examples/"

// TestAlertSignatureExamples runs each program of docs/examples on a webhook that was really sent, and on forged ones.
func TestAlertSignatureExamples(t *testing.T) {
	h, in := newAlertHouse(t, "sqlite"), newAlertInbox(t)
	const secret = "s3cret: ü, 'quotes' and $spaces"
	h.report(alertCall{id: "a", more: alertObject{"outcome": "fail"}})
	h.rule("outcome_fail_rate", 0.5, alertObject{"name": "Anrufe <scheitern> & ü\n", "webhook_url": in.URL, "secret": secret})
	h.sweep()
	h.deliver()
	got := in.one(t)
	signature := got.header.Get("X-Alert-Signature")

	program := filepath.Join(t.TempDir(), "verify")
	build := exec.Command(alertTool(t, "go"), "build", "-o", program, alertExamples+"verify.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("verify.go: %v\n%s", err, out)
	}
	alertTool(t, "openssl")
	for language, command := range map[string][]string{
		"Go":     {program},
		"Python": {alertTool(t, "python3"), alertExamples + "verify.py"},
		"Node":   {alertTool(t, "node"), alertExamples + "verify.mjs"},
		"shell":  {alertTool(t, "sh"), alertExamples + "verify.sh"},
	} {
		for _, c := range []struct {
			what, secret, signature string
			body                    []byte
			genuine                 bool
		}{
			{"as it arrived", secret, signature, got.body, true},
			{"another secret", secret + " ", signature, got.body, false},
			{"one byte more", secret, signature, append(got.body[:len(got.body):len(got.body)], '\n'), false},
			{"another name", secret, signature, bytes.Replace(got.body, []byte("Anrufe"), []byte("anrufe"), 1), false},
			{"half a signature", secret, signature[:30], got.body, false},
			{"the digest alone", secret, signature[len("sha256="):], got.body, false},
			{"a signature that is no hex", secret, "sha256=ü" + signature[9:], got.body, false},
			{"no signature", secret, "", got.body, false},
		} {
			cmd := exec.Command(command[0], append(command[1:], c.signature)...)
			cmd.Stdin = bytes.NewReader(c.body)
			cmd.Env = append(os.Environ(), "ALERT_SECRET="+c.secret)
			out, err := cmd.CombinedOutput()
			want := map[bool]string{true: "genuine\n", false: "forged\n"}[c.genuine]
			if string(out) != want || (err == nil) != c.genuine {
				t.Errorf("%s, %s: %q, %v; want %q", language, c.what, out, err, want)
			}
		}
	}
}

// TestAlertGuideShowsTheExamples holds that what docs/alerting.md shows is what the programs do.
func TestAlertGuideShowsTheExamples(t *testing.T) {
	guide, err := os.ReadFile("../../docs/alerting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, verify, ok := strings.Cut(string(guide), "## Verify the signature")
	if !ok {
		t.Fatal("the guide does not say how to verify the signature")
	}
	files := map[string]string{"go": "verify.go", "python": "verify.py", "js": "verify.mjs", "sh": "verify.sh"}
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(verify, -1) {
		file := files[block[1]]
		delete(files, block[1])
		if source, err := os.ReadFile(alertExamples + file); err != nil || !strings.Contains(string(source), block[2]) {
			t.Errorf("the guide shows something that is not in examples/%s:\n%s", file, block[2])
		}
	}
	for language := range files {
		t.Errorf("the guide has nothing for %s", language)
	}
}

// alertTool finds a program that a test needs.
func alertTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing, which this test needs: scripts/install-deps installs it on Debian", name)
	}
	return path
}
