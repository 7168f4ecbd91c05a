package sqlstore

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"sidetone/internal/demo"
)

var newDictionary = flag.Bool("new-dictionary", false, "write a new dictionary; give it a new number and keep the old ones for reading")

const demoReport = "../../testdata/fixtures/demo-call/chat_history.json"

// TestDictionary holds what the dictionary is for: a report shrinks by at least a tenth more with it than without.
func TestDictionary(t *testing.T) {
	if *newDictionary {
		writeDictionary(t)
	}
	plain, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	with, without := 0, 0
	for i := range 50 {
		doc := demo.BenchCall(i).Body
		packed := compress(doc)
		with, without = with+len(packed), without+len(plain.EncodeAll(doc, nil))
		back, err := decompress(packed)
		if err != nil || !bytes.Equal(back, doc) {
			t.Fatalf("report %d did not come back: %v", i, err)
		}
	}
	if with*100 > without*92 {
		t.Errorf("with the dictionary %d bytes, without %d", with, without)
	}
	t.Logf("%d bytes a report with the dictionary, %d without", with/50, without/50)
}

// writeDictionary trains on the real demo call and on synthetic ones, so that it knows the keys and habits of the SDKs.
func writeDictionary(t *testing.T) {
	history, err := os.ReadFile(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	g := demo.NewGenerator(1)
	var samples [][]byte
	for i := range 80 {
		samples = append(samples, g.Call(i, time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)).Body)
	}
	dict, err := zstd.BuildDict(zstd.BuildDictOptions{ID: dictionaryID, Contents: samples, History: history,
		Offsets: [3]int{1, 4, 8}, Level: zstd.SpeedFastest})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("report.dict", dict, 0o644); err != nil {
		t.Fatal(err)
	}
}
