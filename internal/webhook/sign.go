package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// Headers of a delivery, in the form in which Request.Header is keyed.
const (
	HeaderContentType = "Content-Type"
	HeaderRuleID      = "X-Alert-Rule-Id"
	HeaderFiringID    = "X-Alert-Firing-Id"
	HeaderSignature   = "X-Alert-Signature"

	// Standard Webhooks (https://www.standardwebhooks.com), sent when the secret is of its form.
	HeaderWebhookID        = "Webhook-Id"
	HeaderWebhookTimestamp = "Webhook-Timestamp"
	HeaderWebhookSignature = "Webhook-Signature"
)

// StandardPrefix marks a secret of Standard Webhooks: the rest is the key in base64.
const StandardPrefix = "whsec_"

// Request is one HTTP request, ready to send. Header is keyed by canonical names.
type Request struct {
	Method string
	URL    string
	Header map[string]string
	Body   []byte
}

// Message is what one request carries. FiringID is "" for a test; ID then is the attempt's own id, and the firing id
// otherwise, which lets receivers drop repeats.
type Message struct {
	ID       string
	RuleID   string
	FiringID string
	Body     []byte
}

// NewRequest builds the request that brings m to t at the given time, signed over exactly m.Body. The rule's extra
// headers go first, so that none of them can replace one of ours.
func NewRequest(t Target, m Message, now time.Time) Request {
	h := make(map[string]string, len(t.Headers)+7)
	for name, value := range t.Headers {
		name = textproto.CanonicalMIMEHeaderKey(name)
		// Also where we send none ourselves: a rule must not make a test look like a firing, or itself look signed.
		if !strings.HasPrefix(name, "X-Alert-") {
			h[name] = value
		}
	}
	h[HeaderContentType] = "application/json"
	h[HeaderRuleID] = m.RuleID
	if m.FiringID != "" {
		h[HeaderFiringID] = m.FiringID
	}
	if t.Secret != "" {
		h[HeaderSignature] = Signature(t.Secret, m.Body)
	}
	if key, ok := StandardKey(t.Secret); ok {
		ts := strconv.FormatInt(now.Unix(), 10)
		h[HeaderWebhookID] = m.ID
		h[HeaderWebhookTimestamp] = ts
		h[HeaderWebhookSignature] = standardSignature(key, m.ID, ts, m.Body)
	}
	return Request{Method: t.Method, URL: t.URL, Header: h, Body: m.Body}
}

// Signature is the value of x-alert-signature: "sha256=" and the hex HMAC-SHA256 of body, keyed with the whole secret.
func Signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// StandardKey is the key inside a secret of the form whsec_<base64>, false for any other secret.
func StandardKey(secret string) ([]byte, bool) {
	rest, ok := strings.CutPrefix(secret, StandardPrefix)
	if !ok {
		return nil, false
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "="))
	return key, err == nil && len(key) > 0
}

// standardSignature is the value of webhook-signature: version 1 signs "id.timestamp.body".
func standardSignature(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
