package app

import (
	"errors"
	"fmt"
	"os"

	"sidetone/internal/errs"
	"sidetone/internal/price"
)

// loadPrices makes the price table of the built-in prices and of the file that overrides them, "" for none.
func loadPrices(file string) (*price.Table, error) {
	if file == "" {
		return price.Load(nil)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("PRICES_FILE cannot be read: %w", err)
	}
	table, err := price.Load(text)
	if e := (*errs.Error)(nil); errors.As(err, &e) {
		return nil, fmt.Errorf("PRICES_FILE %s: %s", file, e.Message)
	}
	return table, err
}
