package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadPrices(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.json", `{"prices": [{"kind": "llm", "provider": "openai", "models": ["gpt-4o"], "input_per_1m": 7, "output_per_1m": 7}]}`)
	for path, want := range map[string]float64{"": 2.5, good: 7} {
		table, err := loadPrices(path)
		if err != nil {
			t.Fatal(err)
		}
		if usd, ok := table.LLM("openai", "gpt-4o", 1_000_000, 0, 0); !ok || usd != want {
			t.Errorf("with %q a million tokens cost %v, %v; want %v", path, usd, ok, want)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.json"):     "PRICES_FILE cannot be read",
		file("no.json", "not JSON"):         "not a price table",
		file("bad.json", `{"prices":[{}]}`): "prices[0].kind",
		file("empty.json", ""):              "not a price table",
	} {
		_, err := loadPrices(path)
		if err == nil || !strings.HasPrefix(err.Error(), "PRICES_FILE ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want PRICES_FILE and %q", path, err, want)
		}
	}
}
