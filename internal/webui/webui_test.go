package webui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

var script = strings.Repeat("console.log('sidetone');\n", 200)

func build() fstest.MapFS {
	return fstest.MapFS{
		".gitkeep":            {},
		"index.html":          {Data: []byte("<!doctype html><title>app</title>")},
		"color-scheme.js":     {Data: []byte("1")},
		"assets/app-3f9a.js":  {Data: []byte(script)},
		"assets/app-3f9a.css": {Data: []byte("a{}")},
	}
}

func get(t *testing.T, h http.Handler, target string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestRoutesAndCaching(t *testing.T) {
	h := newHandler(build())
	for _, c := range []struct {
		path, contentType, cache, body string
		status                         int
	}{
		{"/", "text/html; charset=utf-8", "no-cache", "<title>app</title>", 200},
		{"/sessions/room.1:AJ_9", "text/html; charset=utf-8", "no-cache", "<title>app</title>", 200},
		{"/index.html", "text/html; charset=utf-8", "no-cache", "<title>app</title>", 200},
		{"/color-scheme.js", "text/javascript; charset=utf-8", "no-cache", "1", 200},
		{"/assets/app-3f9a.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "sidetone", 200},
		{"/assets/app-3f9a.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable", "a{}", 200},
		{"/assets/app-0000.js", "text/plain; charset=utf-8", "", "No such file", 404},
		{"/assets/../../etc/passwd", "text/html; charset=utf-8", "no-cache", "<title>app</title>", 200},
		{"/.gitkeep", "text/html; charset=utf-8", "no-cache", "<title>app</title>", 200},
	} {
		t.Run(c.path, func(t *testing.T) {
			res := get(t, h, c.path)
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
			if got := res.Header.Get("Content-Type"); got != c.contentType {
				t.Errorf("content type %q, want %q", got, c.contentType)
			}
			if got := res.Header.Get("Cache-Control"); got != c.cache {
				t.Errorf("cache control %q, want %q", got, c.cache)
			}
			if got := read(t, res); !strings.Contains(got, c.body) {
				t.Errorf("body %q, want %q in it", got, c.body)
			}
		})
	}
}

func TestSecurityHeadersOnEveryAnswer(t *testing.T) {
	for name, h := range map[string]http.Handler{"built": newHandler(build()), "not built": newHandler(fstest.MapFS{})} {
		for _, target := range []string{"/", "/assets/app-0000.js"} {
			res := get(t, h, target)
			policy := res.Header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s %s: policy %q lacks %q", name, target, policy, want)
				}
			}
			if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("%s %s: X-Content-Type-Options %q", name, target, got)
			}
			if got := res.Header.Get("Referrer-Policy"); got != "same-origin" {
				t.Errorf("%s %s: Referrer-Policy %q", name, target, got)
			}
		}
	}
}

func TestGzip(t *testing.T) {
	h := newHandler(build())
	for accept, want := range map[string]bool{
		"gzip, br": true, "br, GZIP;q=0.5": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=x": false,
	} {
		res := get(t, h, "/assets/app-3f9a.js", "Accept-Encoding", accept)
		if res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: no Vary", accept)
		}
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: gzip %v, want %v", accept, got, want)
		}
		body := read(t, res)
		if want {
			unzip, err := gzip.NewReader(bytes.NewReader([]byte(body)))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(unzip)
			if err != nil {
				t.Fatal(err)
			}
			body = string(plain)
		}
		if body != script {
			t.Errorf("%q: the body is not the script", accept)
		}
	}
	if got := get(t, h, "/assets/app-3f9a.css", "Accept-Encoding", "gzip").Header.Get("Content-Encoding"); got != "" {
		t.Errorf("a file of three bytes is sent as %q", got)
	}
}

func TestRevalidation(t *testing.T) {
	h := newHandler(build())
	plain := get(t, h, "/assets/app-3f9a.js").Header.Get("ETag")
	zipped := get(t, h, "/assets/app-3f9a.js", "Accept-Encoding", "gzip").Header.Get("ETag")
	if plain == "" || plain == zipped {
		t.Fatalf("entity tags %q and %q must differ", plain, zipped)
	}
	res := get(t, h, "/assets/app-3f9a.js", "Accept-Encoding", "gzip", "If-None-Match", `"other", W/`+zipped)
	if res.StatusCode != http.StatusNotModified || read(t, res) != "" {
		t.Errorf("status %d, want 304 without a body", res.StatusCode)
	}
	if res := get(t, h, "/assets/app-3f9a.js", "If-None-Match", zipped); res.StatusCode != 200 {
		t.Errorf("the tag of another encoding answered %d, want 200", res.StatusCode)
	}
}

func TestMethods(t *testing.T) {
	for name, h := range map[string]http.Handler{"built": newHandler(build()), "not built": newHandler(fstest.MapFS{})} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: POST answered %d, Allow %q", name, w.Code, w.Header().Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	newHandler(build()).ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD answered %d with %d bytes, Content-Length %q", w.Code, w.Body.Len(), w.Header().Get("Content-Length"))
	}
}

func TestWithoutABuild(t *testing.T) {
	res := get(t, newHandler(fstest.MapFS{".gitkeep": {}}), "/sessions")
	body := read(t, res)
	for _, want := range []string{"not built", "make ui", `href="/docs"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, cache %q", res.StatusCode, res.Header.Get("Cache-Control"))
	}
}

func TestEmbeddedHandler(t *testing.T) {
	res := get(t, Handler(), "/")
	if res.StatusCode != 200 || !strings.Contains(read(t, res), "Sidetone") {
		t.Errorf("the embedded dashboard answered %d", res.StatusCode)
	}
}
