// Package webui serves the dashboard: a single-page application, built from web/ into dist and embedded here.
// The package compiles without a build; the handler then says how to make one.
package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

const (
	indexName = "index.html"
	// assetDir is where the build puts files whose name carries a hash of their content.
	assetDir = "assets/"

	// contentSecurityPolicy lets the page load from its own server and nowhere else. Inline style attributes are
	// what Mantine positions its parts with; inline scripts stay forbidden.
	contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; font-src 'self'; connect-src 'self'; media-src 'self' blob:; manifest-src 'self'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

	// minGzipBytes: below about one TCP segment compression saves no round trip.
	minGzipBytes = 1400
)

// Handler serves the embedded dashboard. Mount it at "/" behind the API routes: every path that is not a file
// answers with the application, which shows the page for its own URLs and a "not found" page for the others.
func Handler() http.Handler {
	built, err := fs.Sub(dist, "dist")
	if err != nil { // only a malformed constant path can fail
		panic(err)
	}
	return newHandler(built)
}

// asset is one file of the build, ready to send.
type asset struct {
	body         []byte
	contentType  string
	etag         string
	cacheControl string
	compressed   func() []byte // gzip of body, made once; nil when it would not help
}

type handler struct {
	assets map[string]*asset // by path inside dist, without a leading slash
	index  *asset
}

func newHandler(built fs.FS) http.Handler {
	assets := map[string]*asset{}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		body, err := fs.ReadFile(built, name)
		if err != nil {
			return err
		}
		assets[name] = newAsset(name, body)
		return nil
	})
	if err != nil { // an embedded file system does not fail
		panic(fmt.Sprintf("webui: reading the embedded dashboard: %v", err))
	}
	index, ok := assets[indexName]
	if !ok {
		return secured(http.HandlerFunc(serveNotBuilt))
	}
	return secured(&handler{assets: assets, index: index})
}

func newAsset(name string, body []byte) *asset {
	sum := sha256.Sum256(body)
	a := &asset{
		body:         body,
		contentType:  contentType(name),
		etag:         hex.EncodeToString(sum[:8]),
		cacheControl: "no-cache",
	}
	if strings.HasPrefix(name, assetDir) {
		a.cacheControl = "public, max-age=31536000, immutable"
	}
	if len(body) >= minGzipBytes && compressible(a.contentType) {
		a.compressed = sync.OnceValue(func() []byte { return gzipped(body) })
	}
	return a
}

// contentType does not ask the machine's MIME tables for the types a dashboard is made of: they differ, and
// with nosniff a wrong one stops the page.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".map":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	}
	if known := mime.TypeByExtension(path.Ext(name)); known != "" {
		return known
	}
	return "application/octet-stream"
}

func compressible(contentType string) bool {
	return strings.HasPrefix(contentType, "text/") ||
		contentType == "image/svg+xml" || contentType == "application/json"
}

func gzipped(body []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is legal
	_, _ = w.Write(body)                                    // a bytes.Buffer does not fail
	_ = w.Close()
	return out.Bytes()
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The dashboard answers GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	found, ok := h.assets[name]
	switch {
	case ok:
	case strings.HasPrefix(name, assetDir):
		// An asset of an older build: the application instead of a script would only confuse the browser.
		http.Error(w, "No such file in this build of the dashboard.", http.StatusNotFound)
		return
	default:
		found = h.index
	}
	found.serve(w, r)
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Cache-Control", a.cacheControl)
	body, etag := a.body, `"`+a.etag+`"`
	if a.compressed != nil {
		header.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			body, etag = a.compressed(), `"`+a.etag+`-gzip"`
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // a client that went away needs no answer
}

// acceptsGzip reads an Accept-Encoding header. Only an explicit gzip counts, and "gzip;q=0" refuses it.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		quality, given := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !given {
			return true
		}
		q, err := strconv.ParseFloat(quality, 64)
		return err == nil && q > 0
	}
	return false
}

// matches reports whether an If-None-Match header names the entity tag.
func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		candidate := strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if candidate == etag || candidate == "*" {
			return true
		}
	}
	return false
}

// secured adds the headers every page of the dashboard carries.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

const notBuiltPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sidetone: dashboard not built</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto 0; padding: 0 1.5rem }
code { font: .95em ui-monospace, monospace; padding: .1em .35em; border: 1px solid #8884; border-radius: 4px }
</style>
<main>
<h1>The dashboard is not built</h1>
<p>The server is running and takes reports, but this program was compiled without its dashboard.</p>
<p>Build it with <code>make ui</code> in the source tree (Node.js 20 or newer), compile the program again and restart it.</p>
<p>Everything the dashboard shows is also in the API: <a href="/docs">API reference</a>.</p>
</main>
</html>
`

func serveNotBuilt(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The dashboard answers GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// Not a 404: "/" exists, and a check that looks at it should see that the server is up.
	_, _ = w.Write([]byte(notBuiltPage))
}
