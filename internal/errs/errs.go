// Package errs holds the few kinds of error that cross package boundaries.
//
// A kind says what the caller can do about it, never where it came from. The HTTP layer maps each kind to one
// status and code in one place; domain and adapters only pick the kind.
package errs

import (
	"errors"
	"fmt"
	"strings"
)

// Kind classifies an error by what the caller can do about it.
type Kind int

const (
	Internal        Kind = iota // ours: nothing the caller can do; details stay in the log
	Invalid                     // the input breaks a rule; Fields say which
	InvalidJSON                 // the input is not JSON at all
	InvalidQuery                // a query parameter is wrong
	Unauthorized                // no or wrong credentials
	NotFound                    // no such record
	TooLarge                    // the body exceeds a cap
	UnsupportedType             // the media type or encoding is not accepted here
	TooMany                     // more of something than one request may name
	Unavailable                 // the database or a store is away or overloaded: try again
)

// Field is one violated rule: the field's path as the client wrote it, and what is allowed.
type Field struct {
	Field   string `json:"field" doc:"Path of the field as the client wrote it"`
	Message string `json:"message" doc:"What is wrong and what is allowed"`
}

// Error is an error of a known kind. Message is shown to clients, so it never carries internals; Cause is logged only.
type Error struct {
	Kind    Kind
	Message string
	Fields  []Field
	Cause   error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "; %s: %s", f.Field, f.Message)
	}
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an error of a kind with a message fit for clients.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and a message fit for clients; err itself is only logged.
func Wrap(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Cause: err}
}

// InvalidFields makes one Invalid error out of all violated rules, or nil when there are none.
func InvalidFields(fields []Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Message: "the payload breaks these rules", Fields: fields}
}

// InvalidField makes an Invalid error for one field.
func InvalidField(field, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	return &Error{Kind: Invalid, Message: field + ": " + msg, Fields: []Field{{field, msg}}}
}

// KindOf is the kind of the first Error in err's chain; Internal when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
