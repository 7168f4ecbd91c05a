package sqlstore

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"sidetone/internal/session"
	"sidetone/internal/stamp"
)

// maxDocument bounds what one stored document may unpack to, in bytes: far above every ingest cap.
const maxDocument = 1 << 30

// reportDict makes small documents smaller: it holds the keys that every report repeats. A document names the dictionary
// it was made with, so a new one gets a new number and this one stays for reading.
//
//go:embed report.dict
var reportDict []byte

const dictionaryID = 1

// The coders are safe for concurrent use through EncodeAll and DecodeAll. The fastest level: on reports of 35 KB the
// default one saves 2 % more bytes for two to four times the time (measured, internal/bench).
var (
	docEncoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		zstd.WithEncoderCRC(true), zstd.WithWindowSize(1<<20), zstd.WithEncoderDict(reportDict)))
	docDecoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxDocument),
		zstd.WithDecoderDicts(reportDict)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: cannot happen
	}
	return v
}

func compress(doc []byte) []byte { return docEncoder.EncodeAll(doc, make([]byte, 0, len(doc)/6+64)) }

func decompress(data []byte) ([]byte, error) {
	doc, err := docDecoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("a stored document is damaged: %w", err)
	}
	return doc, nil
}

// packSamples writes milliseconds with up to three decimals as a JSON array, "" for none: readable for both engines
// and for people.
func packSamples(ms []float64) string {
	if len(ms) == 0 {
		return ""
	}
	b := make([]byte, 0, len(ms)*8)
	b = append(b, '[')
	for i, v := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, roundMicro(v), 'f', -1, 64)
	}
	return string(append(b, ']'))
}

func roundMicro(ms float64) float64 { return float64(int64(ms*1000+0.5)) / 1000 }

// unpackSamples reads what packSamples wrote.
func unpackSamples(s string) ([]float64, error) {
	if s == "" {
		return nil, nil
	}
	return appendSamples(make([]float64, 0, 1+len(s)/6), s)
}

// appendSamples adds what packSamples wrote to a list. It is on the path of every alert tick, so it does not use a JSON
// decoder.
func appendSamples(out []float64, s string) ([]float64, error) {
	start := 1
	for i := 1; i < len(s); i++ {
		if c := s[i]; c == ',' || c == ']' {
			v, ok := parseSample(s[start:i])
			if !ok {
				return nil, errors.New("stored samples are damaged")
			}
			out = append(out, v)
			start = i + 1
		}
	}
	return out, nil
}

// parseSample reads a number. With few digits and at most three decimals, which is what packSamples writes, one division
// of two whole numbers gives the nearest double; anything else is left to the standard library.
func parseSample(s string) (float64, bool) {
	n, point := int64(0), len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
			continue
		case c == '.' && point == len(s) && i > 0:
			point = i
			continue
		}
		point = 0 // not so simple
		break
	}
	if decimals := len(s) - point - 1; point > 0 && len(s) <= 15 && decimals <= 3 && decimals != 0 {
		return float64(n) / [...]float64{1, 1, 10, 100, 1000}[decimals+1], true
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// A packed verdict is [judge, verdict, arrival in µs].
type packedVerdict struct {
	session.Verdict
}

func (v packedVerdict) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{v.Judge, v.Verdict.Verdict, stamp.Micros(v.At)})
}

func packVerdicts(vs []session.Verdict) (string, error) {
	if len(vs) == 0 {
		return "", nil
	}
	packed := make([]packedVerdict, len(vs))
	for i, v := range vs {
		packed[i] = packedVerdict{v}
	}
	b, err := json.Marshal(packed)
	return string(b), err
}

// eachVerdict reads what packVerdicts wrote. It is on the path of every alert tick: a JSON decoder would take ten times as
// long.
func eachVerdict(packed string, put func(judge, verdict string, at int64)) error {
	if packed == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(packed, "[")
	for ok && rest != "]" {
		var judge, verdict, number string
		if rest, ok = strings.CutPrefix(rest, "["); ok {
			judge, rest, ok = cutString(rest)
		}
		if ok {
			verdict, rest, ok = cutString(rest)
		}
		if ok {
			number, rest, ok = strings.Cut(rest, "]")
		}
		at, err := strconv.ParseInt(number, 10, 64)
		if ok = ok && err == nil; ok {
			put(judge, verdict, at)
			rest = strings.TrimPrefix(rest, ",")
		}
	}
	if !ok {
		return errors.New("stored verdicts are damaged")
	}
	return nil
}

// cutString takes a JSON string and the comma behind it off the front of s.
func cutString(s string) (text, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", "", false
	}
	escaped := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			if text = s[1:i]; escaped && json.Unmarshal([]byte(s[:i+1]), &text) != nil {
				return "", "", false
			}
			rest, ok = strings.CutPrefix(s[i+1:], ",")
			return text, rest, ok
		}
	}
	return "", "", false
}

// storedSignals is session.Signals as stored: microseconds, absent when the signal never came.
type storedSignals struct {
	Report      int64 `json:"report,omitempty"`
	Transcript  int64 `json:"transcript,omitempty"`
	Audio       int64 `json:"audio,omitempty"`
	Logs        int64 `json:"logs,omitempty"`
	Traces      int64 `json:"traces,omitempty"`
	Metrics     int64 `json:"metrics,omitempty"`
	Evaluations int64 `json:"evaluations,omitempty"`
	Outcome     int64 `json:"outcome,omitempty"`
}

func packSignals(s session.Signals) (string, error) {
	b, err := json.Marshal(storedSignals{micros(s.Report), micros(s.Transcript), micros(s.Audio), micros(s.Logs),
		micros(s.Traces), micros(s.Metrics), micros(s.Evaluations), micros(s.Outcome)})
	return string(b), err
}

func unpackSignals(text string) (session.Signals, error) {
	var s storedSignals
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return session.Signals{}, fmt.Errorf("stored signals are damaged: %w", err)
	}
	return session.Signals{Report: fromMicros(s.Report), Transcript: fromMicros(s.Transcript), Audio: fromMicros(s.Audio),
		Logs: fromMicros(s.Logs), Traces: fromMicros(s.Traces), Metrics: fromMicros(s.Metrics),
		Evaluations: fromMicros(s.Evaluations), Outcome: fromMicros(s.Outcome)}, nil
}

// micros stores a time, 0 for an unknown one.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return stamp.Micros(t)
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return stamp.FromMicros(us)
}
