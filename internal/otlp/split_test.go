package otlp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/klauspost/compress/gzip"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"sidetone/internal/session"
)

// TestAnySplitIntoBatchesSaysTheSame sends the records of the captured call in random order and batches, some of them
// twice, and merges what each batch says.
func TestAnySplitIntoBatchesSaysTheSame(t *testing.T) {
	f := fixture(t, "livekit-python-logs/logs")
	z, err := gzip.NewReader(bytes.NewReader(f.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var data logspb.LogsData
	if err := proto.Unmarshal(body, &data); err != nil {
		t.Fatal(err)
	}
	type record struct {
		scope string
		r     *logspb.LogRecord
	}
	var records []record
	for _, sl := range data.ResourceLogs[0].ScopeLogs {
		for _, r := range sl.LogRecords {
			records = append(records, record{sl.Scope.Name, r})
		}
	}
	whole := decodeLogs(t, f).Groups[0]
	want, err := session.MarshalLogSignals(&whole.Signals)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		var merged session.LogSignals
		keys := map[[16]byte]bool{}
		send := append([]record{}, records...)
		for range 10 {
			send = append(send, records[r.IntN(len(records))])
		}
		r.Shuffle(len(send), func(i, j int) { send[i], send[j] = send[j], send[i] })
		for len(send) > 0 {
			n := 1 + r.IntN(len(send))
			batch := &logspb.LogsData{}
			for _, rec := range send[:n] {
				batch.ResourceLogs = append(batch.ResourceLogs, logsOf(rec.scope, rec.r).ResourceLogs...)
			}
			send = send[n:]
			for _, g := range decodeLogs(t, request{typeProtobuf, "", marshal(t, batch)}).Groups {
				if g.Key != whole.Key {
					t.Fatalf("seed %d: key %v", seed, g.Key)
				}
				merged.Merge(g.Signals)
				for _, rec := range g.Records {
					keys[rec.Key] = true
				}
			}
		}
		got, err := session.MarshalLogSignals(&merged)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || len(keys) != 1 || !keys[whole.Records[0].Key] {
			t.Fatalf("seed %d: %d logs\ngot  %s\nwant %s", seed, len(keys), got, want)
		}
	}
}
