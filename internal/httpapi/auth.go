package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sidetone/internal/errs"
)

const (
	// maxAuthorization is the longest Authorization header that is looked at, in bytes. A LiveKit token is under 1 KB;
	// the rest is room for metadata in its claims.
	maxAuthorization = 16 << 10
	// tokenLeeway is how far the clocks of an SDK and of this server may be apart: what LiveKit's own verifier allows.
	tokenLeeway = 60 * time.Second

	basicChallenge  = `Basic realm="sidetone", charset="UTF-8"`
	bearerChallenge = `Bearer realm="sidetone"`
)

// Auth decides who may send and who may read. With neither pair set everything is open; with only the LiveKit pair,
// sending needs a token and reading is open; with the Basic pair, reading needs the password, and sending needs it too
// or, when the LiveKit pair is also set, a token.
type Auth struct {
	basic, bearer bool
	user, pass    [sha256.Size]byte // hashes, so that comparing takes the same time whatever the lengths
	key           [sha256.Size]byte
	secret        []byte
	parser        *jwt.Parser
	deny          func(w http.ResponseWriter, r *http.Request, err error)
}

// NewAuth enables each kind of credentials whose pair is set; half a pair enables nothing. Tokens are checked against
// now. A refused request goes to deny with an error of kind errs.Unauthorized, its WWW-Authenticate header already set.
func NewAuth(basicUser, basicPass, lkKey, lkSecret string, now func() time.Time, deny func(w http.ResponseWriter, r *http.Request, err error)) *Auth {
	return &Auth{
		basic: basicUser != "" && basicPass != "", bearer: lkKey != "" && lkSecret != "",
		user: sha256.Sum256([]byte(basicUser)), pass: sha256.Sum256([]byte(basicPass)),
		key: sha256.Sum256([]byte(lkKey)), secret: []byte(lkSecret),
		parser: jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
			jwt.WithLeeway(tokenLeeway), jwt.WithTimeFunc(now), jwt.WithStrictDecoding()),
		deny: deny,
	}
}

// Ingest guards the routes that SDKs and test plugins post to: any enabled kind of credentials will do.
func (a *Auth) Ingest(next http.Handler) http.Handler { return a.guard(next, a.basic, a.bearer) }

// Read guards the API, the dashboard and the documents: Basic when it is enabled, open otherwise.
func (a *Auth) Read(next http.Handler) http.Handler { return a.guard(next, a.basic, false) }

func (a *Auth) guard(next http.Handler, basic, bearer bool) http.Handler {
	if !basic && !bearer {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := a.check(r, basic, bearer)
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		if basic {
			w.Header().Add("WWW-Authenticate", basicChallenge)
		}
		if bearer {
			w.Header().Add("WWW-Authenticate", bearerChallenge)
		}
		a.deny(w, r, err)
	})
}

// check finds out whether the request carries accepted credentials. The error says which were missing or why they
// were refused, in words that are safe to send back: nothing about a token is said before its signature holds.
func (a *Auth) check(r *http.Request, basic, bearer bool) error {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) == 0:
		return errs.New(errs.Unauthorized, "credentials are missing: this route needs %s", wanted(basic, bearer))
	case len(values) > 1:
		return errs.New(errs.Unauthorized, "send one Authorization header, not %d", len(values))
	case len(values[0]) > maxAuthorization:
		return errs.New(errs.Unauthorized, "the Authorization header is longer than %d bytes", maxAuthorization)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case bearer && strings.EqualFold(scheme, "Bearer"):
		return a.checkToken(strings.TrimSpace(token))
	case basic && strings.EqualFold(scheme, "Basic"):
		return a.checkPassword(r)
	}
	return errs.New(errs.Unauthorized, "this kind of credentials is not accepted here: this route needs %s", wanted(basic, bearer))
}

func wanted(basic, bearer bool) string {
	switch {
	case basic && bearer:
		return "Basic credentials or a LiveKit Bearer token"
	case bearer:
		return "a LiveKit Bearer token"
	}
	return "Basic credentials"
}

func (a *Auth) checkPassword(r *http.Request) error {
	user, pass, ok := r.BasicAuth()
	if !ok {
		return errs.New(errs.Unauthorized, "the Basic credentials are malformed")
	}
	u, p := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(pass))
	if subtle.ConstantTimeCompare(u[:], a.user[:])&subtle.ConstantTimeCompare(p[:], a.pass[:]) != 1 {
		return errs.New(errs.Unauthorized, "the user name or the password is wrong")
	}
	return nil
}

// checkToken accepts what the LiveKit SDKs sign: HS256 with the API secret, the API key as issuer, an expiry, and the
// grant observability.write, which must be the boolean true. Other claims are ignored.
func (a *Auth) checkToken(token string) error {
	claims := jwt.MapClaims{}
	_, err := a.parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return a.secret, nil })
	switch {
	case err == nil:
	case errors.Is(err, jwt.ErrTokenMalformed), errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return errs.Wrap(errs.Unauthorized, err, "the token is not a JWT signed with HS256 and the secret of this server")
	case errors.Is(err, jwt.ErrTokenExpired):
		return errs.Wrap(errs.Unauthorized, err, "the token has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return errs.Wrap(errs.Unauthorized, err, "the token is not valid yet: compare the clocks")
	default:
		return errs.Wrap(errs.Unauthorized, err, "the token needs a valid exp claim")
	}
	issuer, _ := claims["iss"].(string)
	if sum := sha256.Sum256([]byte(issuer)); subtle.ConstantTimeCompare(sum[:], a.key[:]) != 1 {
		return errs.New(errs.Unauthorized, "the issuer of the token is not the API key of this server")
	}
	grant, _ := claims["observability"].(map[string]any)
	if write, _ := grant["write"].(bool); !write {
		return errs.New(errs.Unauthorized, "the token does not grant observability.write")
	}
	return nil
}
