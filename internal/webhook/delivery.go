// Package webhook is the domain of delivering alerts: what is sent, how it is signed, when it is tried again, and
// the dispatcher that claims due deliveries, sends them and records every attempt. It knows neither SQL nor sockets.
package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

const (
	// Timeout is how long a receiver may take for one attempt: connecting, headers and body together (spec, Limits).
	Timeout = 10 * time.Second

	// Lease is how long a claim keeps other dispatchers away from a delivery. It is several times the Timeout, so that
	// an outcome which the database refuses at first can still be written before anybody else may try.
	Lease = 60 * time.Second

	// MaxInFlight bounds the attempts that one process has under way at a time.
	MaxInFlight = 512

	// MaxPerHost bounds those to one host and port, so that a dead receiver cannot take all of MaxInFlight.
	MaxPerHost = 32
)

// Status is the state of a firing's delivery.
type Status string

// The states of a delivery. Pending covers waiting for the first attempt, for a retry, and being under way.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Failed    Status = "failed"
)

// Kind says what an attempt was for.
type Kind string

// The kinds of attempts.
const (
	KindFiring Kind = "firing"
	KindTest   Kind = "test"
)

// Target is where and how a rule wants to be told, as the rule says at the moment of delivery.
type Target struct {
	URL     string
	Method  string            // POST, PUT or PATCH
	Secret  string            // "" when deliveries are not signed
	Headers map[string]string // extra headers, nil when none
}

// Delivery is one claimed delivery of a firing: the right, until Lease, to make its next attempt.
type Delivery struct {
	FiringID string
	RuleID   string
	RuleName string
	Body     []byte // the payload, made when the rule fired and the same at every attempt
	Target   Target
	Attempts int       // attempts recorded so far
	Base     int       // how many of them came before the last redelivery: the schedule starts anew after those
	Lease    time.Time // the claim: Record changes the firing only while it still carries this time
}

// Attempt is one row of the audit table alert_webhook_attempts.
type Attempt struct {
	ID             string
	RuleID         string
	RuleName       string
	FiringID       string // "" for a test
	Kind           Kind
	URL            string
	Method         string
	Number         int // 1 for the first attempt of a firing; goes on counting after a redelivery
	OK             bool
	ResponseStatus int    // 0 when no response came
	Error          string // "" when OK
	Duration       time.Duration
	CreatedAt      time.Time // when the attempt began
}

// Outcome is what one attempt means for its firing.
type Outcome struct {
	Attempt Attempt
	Lease   time.Time // of the Delivery
	Status  Status    // the firing's state from now on
	Next    time.Time // the next attempt; zero unless Status is Pending
	At      time.Time // when the attempt ended
}

// Store keeps deliveries. Every method owns its transaction.
type Store interface {
	// ClaimDue claims due deliveries (pending, next_attempt_at <= now), earliest first. It asks take once for each
	// candidate, with the URL its rule has now, and claims those for which take says yes: next_attempt_at becomes until.
	// A candidate that another dispatcher claimed in between is left out of the result. Claims are atomic: of any
	// number of racing callers exactly one gets a delivery.
	ClaimDue(ctx context.Context, now, until time.Time, take func(url string) bool) ([]Delivery, error)

	// Record writes, in one transaction, every attempt, and the outcome of each firing that is still pending with
	// next_attempt_at equal to the outcome's lease: status, attempt count, last attempt, response status, last error, next
	// attempt. held says for each outcome whether the lease still stood. A lost lease records the attempt and leaves
	// the firing alone; a firing that was deleted meanwhile records nothing. Neither is an error.
	Record(ctx context.Context, outcomes []Outcome) (held []bool, err error)

	// RecordAttempt writes an attempt that belongs to no firing: a test.
	RecordAttempt(ctx context.Context, a Attempt) error

	// NextDue is the earliest next_attempt_at after the given time among pending deliveries, zero when there is none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
}

// NewID makes a random UUID (version 4) for a rule, a firing or an attempt.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program rather than return weak bytes
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
