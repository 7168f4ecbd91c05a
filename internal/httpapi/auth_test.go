package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sidetone/internal/errs"
)

const (
	testUser, testPass  = "ops", "pa:ss wörd"
	testKey, testSecret = "APIkey1", "a-secret-of-the-livekit-project-x"
)

var authNow = time.Date(2026, 11, 21, 5, 20, 0, 0, time.UTC)

// authResult is what one request through a guard led to.
type authResult struct {
	allowed    bool
	err        error
	challenges []string
}

// through sends a request with the given Authorization headers through the guard that pick chooses.
func through(pairs string, pick func(*Auth, http.Handler) http.Handler, headers ...string) authResult {
	var user, pass, key, secret string
	if strings.Contains(pairs, "basic") {
		user, pass = testUser, testPass
	}
	if strings.Contains(pairs, "livekit") {
		key, secret = testKey, testSecret
	}
	var got authResult
	a := NewAuth(user, pass, key, secret, func() time.Time { return authNow }, func(w http.ResponseWriter, _ *http.Request, err error) {
		got.err, got.challenges = err, w.Header().Values("WWW-Authenticate")
	})
	r := httptest.NewRequest("POST", "/observability/recordings/v0", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.allowed = true })
	pick(a, next).ServeHTTP(httptest.NewRecorder(), r)
	return got
}

func basicHeader(user, pass string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+pass))
}

// goodClaims are those of a token that an SDK has just signed.
func goodClaims() jwt.MapClaims {
	return jwt.MapClaims{
		"iss": testKey, "sub": "", "nbf": authNow.Unix(), "exp": authNow.Add(6 * time.Hour).Unix(),
		"observability": map[string]any{"write": true}, "video": map[string]any{}, "name": "", "metadata": "", "sha256": "",
	}
}

func sign(t testing.TB, method jwt.SigningMethod, secret any, claims jwt.Claims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(method, claims).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func goodToken(t testing.TB) string {
	return sign(t, jwt.SigningMethodHS256, []byte(testSecret), goodClaims())
}

func TestWhoMayDoWhat(t *testing.T) {
	password, token := basicHeader(testUser, testPass), "Bearer "+goodToken(t)
	for _, c := range []struct {
		pairs              string
		ingest, read       string // who gets through: none, password, token
		ingestAsk, readAsk string // what a refused request is asked for
	}{
		{pairs: "nothing", ingest: "none password token", read: "none password token"},
		{pairs: "basic", ingest: "password", read: "password", ingestAsk: "Basic", readAsk: "Basic"},
		{pairs: "livekit", ingest: "token", read: "none password token", ingestAsk: "Bearer"},
		{pairs: "basic+livekit", ingest: "password token", read: "password", ingestAsk: "Basic Bearer", readAsk: "Basic"},
	} {
		for who, headers := range map[string][]string{"none": nil, "password": {password}, "token": {token}} {
			for _, route := range []struct {
				name, allowed, ask string
				pick               func(*Auth, http.Handler) http.Handler
			}{{"Ingest", c.ingest, c.ingestAsk, (*Auth).Ingest}, {"Read", c.read, c.readAsk, (*Auth).Read}} {
				got := through(c.pairs, route.pick, headers...)
				want := strings.Contains(route.allowed, who)
				if got.allowed != want || (got.err == nil) != want {
					t.Errorf("%s set, %s by %s: allowed %v, %v; want %v", c.pairs, route.name, who, got.allowed, got.err, want)
				}
				if want {
					continue
				}
				if !errs.Is(got.err, errs.Unauthorized) {
					t.Errorf("%s set, %s by %s: %v is not of kind Unauthorized", c.pairs, route.name, who, got.err)
				}
				asks := strings.Fields(route.ask)
				if len(got.challenges) != len(asks) {
					t.Fatalf("%s set, %s: challenges %q, want %q", c.pairs, route.name, got.challenges, asks)
				}
				for i, ask := range asks {
					if !strings.HasPrefix(got.challenges[i], ask+` realm="sidetone"`) {
						t.Errorf("%s set, %s: challenge %q, want %s", c.pairs, route.name, got.challenges[i], ask)
					}
				}
			}
		}
	}
}

func TestHalfAPairEnablesNothing(t *testing.T) {
	called := false
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true })
	a := NewAuth(testUser, "", "", testSecret, nil, nil)
	a.Read(a.Ingest(next)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if !called {
		t.Error("half a pair closed the routes")
	}
}

func TestWrongPasswords(t *testing.T) {
	for _, headers := range [][]string{
		{basicHeader(testUser, "wrong")}, {basicHeader("root", testPass)}, {basicHeader("", "")}, {basicHeader(testUser+"x", testPass)},
		{basicHeader(testUser, testPass+" ")}, {"Basic"}, {"Basic !!!"}, {"Basic " + base64.StdEncoding.EncodeToString([]byte("nocolon"))},
		{"Digest username=ops"}, {""}, {basicHeader(testUser, testPass), basicHeader(testUser, testPass)},
		{basicHeader(testUser, strings.Repeat("x", maxAuthorization))},
	} {
		if got := through("basic+livekit", (*Auth).Ingest, headers...); got.allowed {
			t.Errorf("%.80q got in", headers)
		}
	}
	if got := through("basic", (*Auth).Read, "bAsIc"+strings.TrimPrefix(basicHeader(testUser, testPass), "Basic")); !got.allowed {
		t.Errorf("the scheme is not case-insensitive: %v", got.err)
	}
}

func TestTokens(t *testing.T) {
	with := func(name string, value any) jwt.MapClaims {
		c := goodClaims()
		if value == nil {
			delete(c, name)
		} else {
			c[name] = value
		}
		return c
	}
	at := func(d time.Duration) int64 { return authNow.Add(d).Unix() }
	for name, c := range map[string]struct {
		claims jwt.MapClaims
		ok     bool
	}{
		"as the SDKs sign it":         {goodClaims(), true},
		"expired 59 s ago":            {with("exp", at(-59*time.Second)), true},
		"expired 61 s ago":            {with("exp", at(-61*time.Second)), false},
		"valid in 59 s":               {with("nbf", at(59*time.Second)), true},
		"valid in 61 s":               {with("nbf", at(61*time.Second)), false},
		"no nbf":                      {with("nbf", nil), true},
		"no exp":                      {with("exp", nil), false},
		"exp null":                    {jwt.MapClaims{"iss": testKey, "exp": nil, "observability": map[string]any{"write": true}}, false},
		"exp as text":                 {with("exp", "9999999999"), false},
		"issued by another key":       {with("iss", "APIother"), false},
		"issuer is a list":            {with("iss", []string{testKey}), false},
		"no issuer":                   {with("iss", nil), false},
		"audience is ignored":         {with("aud", 7), true},
		"no grant":                    {with("observability", nil), false},
		"empty grant":                 {with("observability", map[string]any{}), false},
		"write false":                 {with("observability", map[string]any{"write": false}), false},
		"write as text":               {with("observability", map[string]any{"write": "true"}), false},
		"write as number":             {with("observability", map[string]any{"write": 1}), false},
		"WRITE":                       {with("observability", map[string]any{"WRITE": true}), false},
		"grant is true":               {with("observability", true), false},
		"grant in the video grant":    {with("video", map[string]any{"observability": map[string]any{"write": true}}), true},
		"only grant is in video":      {jwt.MapClaims{"iss": testKey, "exp": at(time.Hour), "video": map[string]any{"write": true}}, false},
		"grant beside unknown grants": {with("observability", map[string]any{"write": true, "read": []int{1}}), true},
	} {
		token := sign(t, jwt.SigningMethodHS256, []byte(testSecret), c.claims)
		if got := through("livekit", (*Auth).Ingest, "Bearer "+token); got.allowed != c.ok {
			t.Errorf("%s: allowed %v (%v), want %v", name, got.allowed, got.err, c.ok)
		}
	}
}

func TestForgedTokens(t *testing.T) {
	good := goodToken(t)
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding.EncodeToString
	for name, token := range map[string]string{
		"another secret":      sign(t, jwt.SigningMethodHS256, []byte("guess"), goodClaims()),
		"HS512":               sign(t, jwt.SigningMethodHS512, []byte(testSecret), goodClaims()),
		"alg none":            sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, goodClaims()),
		"alg none, signature": enc([]byte(`{"alg":"none"}`)) + "." + parts[1] + "." + parts[2],
		"alg is a number":     enc([]byte(`{"alg":256}`)) + "." + parts[1] + "." + parts[2],
		"no signature":        parts[0] + "." + parts[1] + ".",
		"two parts":           parts[0] + "." + parts[1],
		"four parts":          good + ".x",
		"padding bits set":    good[:len(good)-1] + nextLetter(good[len(good)-1]),
		"other claims":        parts[0] + "." + enc([]byte(`{"iss":"APIkey1","exp":9999999999,"observability":{"write":true}}`)) + "." + parts[2],
		"empty":               "",
		"too long":            good + strings.Repeat("A", maxAuthorization),
	} {
		got := through("livekit", (*Auth).Ingest, "Bearer "+token)
		if got.allowed {
			t.Errorf("%s got in", name)
		}
	}
	if got := through("livekit", (*Auth).Ingest, "bearer  "+good); !got.allowed {
		t.Errorf("lower-case scheme and two spaces: %v", got.err)
	}
}

// nextLetter sets the lowest bit that the last letter of an unpadded 32-byte signature leaves unused.
func nextLetter(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, last)|1])
}

// TestRefusalsKeepSDKsSending: the SDKs stop uploading for the rest of a session when a 401 says these words.
func TestRefusalsKeepSDKsSending(t *testing.T) {
	expired := goodClaims()
	expired["exp"] = authNow.Add(-time.Hour).Unix()
	for _, header := range []string{"", "Basic x", "Bearer x", "Bearer " + sign(t, jwt.SigningMethodHS256, []byte(testSecret), expired)} {
		got := through("basic+livekit", (*Auth).Ingest, header)
		if got.err == nil {
			t.Fatalf("%q got in", header)
		}
		for _, words := range []string{"data recording is disabled", "disabled by owner"} {
			if strings.Contains(strings.ToLower(got.err.Error()), words) {
				t.Errorf("%q: the refusal says %q", header, words)
			}
		}
	}
}

// FuzzBearer feeds tokens that nobody signed with the secret: none may get in, and nothing may panic.
func FuzzBearer(f *testing.F) {
	good := goodToken(f)
	f.Add(good[:len(good)-1])
	f.Add(sign(f, jwt.SigningMethodHS256, []byte("guess"), goodClaims()))
	f.Add(sign(f, jwt.SigningMethodHS384, []byte(testSecret), goodClaims()))
	f.Add(sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, goodClaims()))
	f.Add("..")
	f.Add("eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjFlNDAwfQ.AA")
	f.Add("eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("[", 3000))) + ".AA")
	f.Add("\x00.\xff.é")
	f.Fuzz(func(t *testing.T, token string) {
		// Base64 decoders skip line breaks, which no header can hold.
		if strings.NewReplacer("\r", "", "\n", "").Replace(strings.TrimSpace(token)) == good {
			return
		}
		if got := through("basic+livekit", (*Auth).Ingest, "Bearer "+token); got.allowed || !errs.Is(got.err, errs.Unauthorized) {
			t.Errorf("%q: allowed %v, %v", token, got.allowed, got.err)
		}
	})
}
