package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Variable names the running cluster that tests share: a URL of a database on it, as a user that may create more.
// with-postgres sets it; without it each test process launches a cluster of its own.
const Variable = "SIDETONE_TEST_POSTGRES"

// shared is the address of the cluster for URL. Its guard removes it when the test process ends.
var shared = sync.OnceValues(func() (string, error) {
	if address := os.Getenv(Variable); address != "" {
		return address, nil
	}
	c, err := Launch()
	if err != nil {
		return "", err
	}
	return c.URL("postgres"), nil
})

// URL is the address of a fresh, empty database that is dropped when the test ends, connections or not.
// Without the server binaries the test fails.
func URL(t testing.TB) string {
	t.Helper()
	address, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return create(t, address)
}

// create makes a database on the cluster at address and drops it at cleanup, unless the cluster is gone by then.
func create(t testing.TB, address string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	if err := execute(t.Context(), address, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("pgtest: create a database on the shared cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(context.Background(), address, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: drop the database: %v", err)
		}
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("pgtest: %s is not a URL", Variable)
	}
	u.Path = "/" + name
	return u.String()
}

func execute(ctx context.Context, address, sql string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	if closed := conn.Close(ctx); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// NewCluster launches a cluster for one test that stops, kills and starts it; it is removed when the test ends.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c, err := Launch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("pgtest: close the cluster: %v", err)
		}
	})
	return c
}
