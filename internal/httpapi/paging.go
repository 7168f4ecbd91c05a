package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sidetone/internal/errs"
)

// Envelope is what every JSON reply carries. It is exported, like everything that replies embed, because the OpenAPI
// document has no fields of embedded types that are not.
type Envelope struct {
	APIID string `json:"api_id" format:"uuid" doc:"Id of this reply; also the x-request-id header and in the server's log"`
}

func envelopeOf(ctx context.Context) Envelope { return Envelope{APIID: apiID(ctx)} }

// listMeta tells where a page lies in its list.
type listMeta struct {
	Limit      int     `json:"limit"`
	Offset     int     `json:"offset"`
	TotalCount int     `json:"total_count"`
	Next       *string `json:"next" doc:"Relative URL of the next page with every filter kept, or null"`
	Previous   *string `json:"previous" doc:"Relative URL of the page before, or null"`
}

// listBody is one page of a list.
type listBody[T any] struct {
	Envelope
	Meta    listMeta `json:"meta"`
	Objects []T      `json:"objects"`
}

type listOutput[T any] struct{ Body listBody[T] }

// PageParams are the paging parameters of every list. They are read as text because a wrong one has its own error.
type PageParams struct {
	Limit  string `query:"limit" doc:"Rows per page; clamped to what the list allows" example:"20"`
	Offset string `query:"offset" doc:"Rows to skip, 0 or more" example:"0"`
}

// page reads the parameters; limit is clamped to 1..most.
func (p PageParams) page(most int) (limit, offset int, err error) {
	limit, offset = min(20, most), 0
	var fields []errs.Field
	if p.Limit != "" {
		if limit, err = strconv.Atoi(p.Limit); err != nil {
			fields = append(fields, errs.Field{Field: "limit", Message: fmt.Sprintf("must be an integer; 1 to %d are served", most)})
		}
		limit = min(max(limit, 1), most)
	}
	if p.Offset != "" {
		if offset, err = strconv.Atoi(p.Offset); err != nil || offset < 0 {
			fields = append(fields, errs.Field{Field: "offset", Message: "must be an integer of 0 or more"})
		}
	}
	return limit, offset, invalidQuery(fields)
}

func invalidQuery(fields []errs.Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &errs.Error{Kind: errs.InvalidQuery, Message: "the query is not valid: " + fields[0].Field + " " + fields[0].Message, Fields: fields}
}

// newList makes a page. u is the URL that was asked for.
func newList[T any](ctx context.Context, u url.URL, limit, offset, total int, objects []T) *listOutput[T] {
	if objects == nil {
		objects = []T{}
	}
	at := func(o int) *string {
		q := u.Query()
		q.Set("limit", strconv.Itoa(limit))
		q.Set("offset", strconv.Itoa(o))
		s := u.Path + "?" + q.Encode()
		return &s
	}
	meta := listMeta{Limit: limit, Offset: offset, TotalCount: total}
	if offset < total-limit { // offset may be as large as an integer can be
		meta.Next = at(offset + limit)
	}
	if offset > 0 {
		meta.Previous = at(max(0, offset-limit))
	}
	return &listOutput[T]{Body: listBody[T]{Envelope: envelopeOf(ctx), Meta: meta, Objects: objects}}
}

// queryReader reads filters and collects what is wrong with them.
type queryReader struct{ fields []errs.Field }

func (q *queryReader) bad(field, format string, args ...any) {
	q.fields = append(q.fields, errs.Field{Field: field, Message: fmt.Sprintf(format, args...)})
}

// list splits a comma-separated filter; empty parts do not count. What no database text can hold is refused.
func (q *queryReader) list(field, value string) []string {
	if strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value) {
		q.bad(field, "must be UTF-8 text without NUL characters")
		return nil
	}
	var out []string
	for _, v := range strings.Split(value, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	if len(out) > 100 {
		q.bad(field, "names %d values; at most 100 are allowed", len(out))
		return nil
	}
	return out
}

// time reads RFC 3339 or a plain date. A plain date means its first instant, or its last when it ends a range; so does a
// millisecond.
func (q *queryReader) time(field, value string, endOfRange bool) time.Time {
	if value == "" {
		return time.Time{}
	}
	if d, err := time.Parse(time.DateOnly, value); err == nil {
		if endOfRange {
			return d.AddDate(0, 0, 1).Add(-time.Microsecond)
		}
		return d
	}
	// A + in a query that nobody escaped arrives as a space.
	t, err := time.Parse(time.RFC3339Nano, strings.Replace(value, " ", "+", 1))
	if err != nil {
		q.bad(field, "must be an RFC 3339 time (2026-11-21T05:20:00Z) or a date (2026-11-21)")
		return time.Time{}
	}
	if endOfRange && t.Nanosecond()%int(time.Millisecond) == 0 {
		// What we show is cut to milliseconds: a time copied from a row must still include that row.
		t = t.Add(time.Millisecond - time.Microsecond)
	}
	return t.UTC()
}

func (q *queryReader) oneOf(field, value string, allowed ...string) string {
	if value == "" {
		return ""
	}
	for _, a := range allowed {
		if value == a {
			return value
		}
	}
	q.bad(field, "must be one of %s", strings.Join(allowed, ", "))
	return ""
}

func (q *queryReader) bool(field, value string) *bool {
	if value == "" {
		return nil
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		q.bad(field, "must be true or false")
		return nil
	}
	return &b
}

func (q *queryReader) int(field, value string) *int64 {
	if value == "" {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		q.bad(field, "must be an integer of 0 or more")
		return nil
	}
	return &n
}

func (q *queryReader) err() error { return invalidQuery(q.fields) }
