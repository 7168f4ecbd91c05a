//go:build ignore

// Checks the signature of a webhook: go run verify.go "$SIGNATURE" < body, with the rule's secret in ALERT_SECRET.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

func genuine(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal([]byte(signature), []byte("sha256="+hex.EncodeToString(mac.Sum(nil))))
}

func main() {
	body, err := io.ReadAll(os.Stdin) // in a server: io.ReadAll(r.Body), before anything parses it
	if err != nil || len(os.Args) != 2 || !genuine(os.Getenv("ALERT_SECRET"), body, os.Args[1]) {
		fmt.Println("forged")
		os.Exit(1)
	}
	fmt.Println("genuine")
}
