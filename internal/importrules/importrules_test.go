// Package importrules holds the architecture: which package may import which, who may touch SQL, and who may ask what
// time it is. docs/architecture.md says why.
package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "sidetone/"

// rule says what the files of one room may use beside the standard library. A room is a folder under internal or
// cmd, with everything below it; a room may always import itself.
type rule struct {
	rooms   []string // other rooms; "*" is all
	modules []string // third-party import paths and everything below them; "*" is all
	clock   bool     // may read the clock and make tickers
	sql     bool     // may use database/sql
}

var (
	base   = []string{"internal/stat", "internal/errs", "internal/stamp"}
	domain = append([]string{"internal/session", "internal/eval", "internal/alert", "internal/webhook",
		"internal/recording"}, base...)
	formats = append([]string{"internal/report", "internal/otlp"}, domain...)

	// pure libraries that any room may use: they do no input or output
	pure = []string{"golang.org/x/text", "github.com/go-json-experiment/json", "github.com/google/uuid"}
)

func allow(lists ...[]string) []string { return slices.Concat(lists...) }

// rules is the house: every room has a line.
var rules = map[string]rule{
	// DOMAIN
	"internal/errs":      {modules: pure},
	"internal/stamp":     {modules: pure},
	"internal/stat":      {modules: pure},
	"internal/price":     {rooms: allow(base, []string{"internal/session"}), modules: pure},
	"internal/session":   {rooms: base, modules: pure},
	"internal/eval":      {rooms: allow(base, []string{"internal/session"}), modules: pure},
	"internal/webhook":   {rooms: base, modules: pure},
	"internal/recording": {rooms: allow(base, []string{"internal/session"}), modules: pure},
	"internal/alert":     {rooms: allow(base, []string{"internal/webhook"}), modules: pure},

	// FORMAT
	"internal/report": {rooms: domain, modules: allow(pure, []string{"google.golang.org/protobuf"})},
	// A chat item in a log record is the item of an uploaded report: report.ParseItem reads both.
	"internal/otlp": {rooms: allow(domain, []string{"internal/report"}), modules: allow(pure, []string{"google.golang.org/protobuf",
		"google.golang.org/genproto/googleapis/rpc", "go.opentelemetry.io/proto/otlp", "github.com/klauspost/compress"})},

	// ADAPTER
	"internal/sqlstore": {rooms: formats, modules: allow(pure, []string{"github.com/jackc/pgx/v5", "modernc.org/sqlite",
		"github.com/klauspost/compress", "golang.org/x/sync"}), sql: true},
	"internal/blob":     {rooms: formats, modules: allow(pure, []string{"github.com/minio/minio-go/v7"})},
	"internal/outbound": {rooms: formats, modules: allow(pure, []string{"golang.org/x/net"})},
	"internal/httpapi": {rooms: formats, modules: allow(pure, []string{"github.com/danielgtaylor/huma/v2", "github.com/golang-jwt/jwt/v5",
		"github.com/prometheus/client_golang", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc",
		"go.opentelemetry.io/proto/otlp", "github.com/klauspost/compress"})},
	"internal/webui":     {rooms: formats},
	"internal/promstats": {rooms: formats, modules: allow(pure, []string{"github.com/prometheus/client_golang"})},
	"internal/loop":      {rooms: formats, clock: true},

	// the process
	"internal/config": {},
	"internal/app":    {rooms: []string{"*"}, modules: []string{"*"}, clock: true},
	"cmd/sidetone":    {rooms: []string{"internal/app", "internal/config", "internal/demo"}, clock: true},
	"internal/demo": {rooms: formats, modules: allow(pure, []string{"google.golang.org/protobuf", "go.opentelemetry.io/proto/otlp", "go.opentelemetry.io/proto/otlp",
		"github.com/schollz/progressbar/v3", "golang.org/x/term"}), clock: true},

	// test support: no part of the program
	"internal/apptest":     testSupport,
	"internal/bench":       testSupport,
	"internal/e2e":         testSupport,
	"internal/importrules": testSupport,
	"internal/pgtest":      testSupport,
	"internal/s3test":      testSupport,
	"internal/storetest":   testSupport,
}

var testSupport = rule{rooms: []string{"*"}, modules: []string{"*"}, clock: true, sql: true}

// clockUses are the names in package time that read the clock or tick by it.
var clockUses = []string{"Now", "Since", "Until", "Tick", "NewTicker"}

// room is the folder that a package belongs to: two elements of its path below the module.
func room(pkg string) string {
	parts := strings.Split(pkg, "/")
	return path.Join(parts[:min(2, len(parts))]...)
}

// violations checks one file of the package in folder dir (such as internal/session), given its source.
func violations(dir, file string, src any) []string {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	here := room(dir)
	r, known := rules[here]
	if !known {
		return []string{fmt.Sprintf("%s is in no layer: give it a line here and a place in docs/architecture.md", here)}
	}
	var found []string
	complain := func(pos token.Pos, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", set.Position(pos), fmt.Sprintf(format, args...)))
	}
	timeName := ""
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			complain(spec.Pos(), "%v", err)
			continue
		}
		own, internal := strings.CutPrefix(imported, module)
		switch {
		case imported == "time":
			timeName = "time"
			if spec.Name != nil {
				timeName = spec.Name.Name
			}
		case imported == "C":
			complain(spec.Pos(), "%s uses cgo: the program is one static binary", here)
		case imported == "database/sql" || strings.HasPrefix(imported, "database/sql/"):
			if !r.sql {
				complain(spec.Pos(), "%s imports %s: only sqlstore speaks SQL", here, imported)
			}
		case internal:
			if to := room(own); to != here && !slices.Contains(r.rooms, "*") && !slices.Contains(r.rooms, to) {
				complain(spec.Pos(), "%s may not import %s", here, to)
			}
		case strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
			if !slices.ContainsFunc(r.modules, func(m string) bool {
				return m == "*" || imported == m || strings.HasPrefix(imported, m+"/")
			}) {
				complain(spec.Pos(), "%s may not import %s", here, imported)
			}
		}
	}
	if timeName == "." {
		complain(tree.Pos(), "%s imports package time without its name, which hides uses of the clock", here)
	}
	if timeName == "" || r.clock {
		return found
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := use.X.(*ast.Ident); ok && pkg.Name == timeName && slices.Contains(clockUses, use.Sel.Name) {
			complain(use.Pos(), "%s uses time.%s: take the time as an argument", here, use.Sel.Name)
		}
		return true
	})
	return found
}

// TestTheHouseKeepsItsRules checks every file of the program that is not a test.
func TestTheHouseKeepsItsRules(t *testing.T) {
	root := "../.."
	seen := map[string]bool{}
	for _, top := range []string{"internal", "cmd"} {
		err := fs.WalkDir(os.DirFS(root), top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules"):
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(name, ".go"):
				return nil
			}
			seen[room(path.Dir(name))] = true
			if strings.HasSuffix(name, "_test.go") {
				return nil
			}
			for _, v := range violations(path.Dir(name), filepath.Join(root, name), nil) {
				t.Error(v)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, must := range []string{"internal/session", "internal/config", "cmd/sidetone", "internal/importrules"} {
		if !seen[must] {
			t.Errorf("%s was not walked: the test looks in the wrong place", must)
		}
	}
}

// TestRulesBite feeds the check sources that break each rule, and some that do not.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct{ dir, src, want string }{
		{"internal/session", `import ("context"; "sidetone/internal/errs"; "time"; "golang.org/x/text/cases"); func f(t time.Time) {}`, ""},
		{"internal/session", `import "sidetone/internal/eval"`, "internal/session may not import internal/eval"},
		{"internal/session", `import "sidetone/internal/sqlstore"`, "internal/session may not import internal/sqlstore"},
		{"internal/session", `import "database/sql"`, "only sqlstore speaks SQL"},
		{"internal/session", `import "github.com/jackc/pgx/v5"`, "may not import github.com/jackc/pgx/v5"},
		{"internal/session", `import "time"; var t = time.Now`, "uses time.Now"},
		{"internal/session", `import clock "time"; var t = clock.NewTicker(1)`, "uses time.NewTicker"},
		{"internal/session", `import . "time"; var t = Now()`, "without its name"},
		{"internal/session", `import "C"`, "cgo"},
		{"internal/alert", `import "sidetone/internal/webhook"`, ""},
		{"internal/webhook", `import "sidetone/internal/alert"`, "internal/webhook may not import internal/alert"},
		{"internal/report", `import ("sidetone/internal/report/wire"; "sidetone/internal/session")`, ""},
		{"internal/report", `import "sidetone/internal/otlp"`, "internal/report may not import internal/otlp"},
		{"internal/report/wire", `import "sidetone/internal/blob"`, "internal/report may not import internal/blob"},
		{"internal/sqlstore", `import ("database/sql"; "github.com/jackc/pgx/v5/stdlib"; "sidetone/internal/alert")`, ""},
		{"internal/sqlstore", `import "sidetone/internal/httpapi"`, "internal/sqlstore may not import internal/httpapi"},
		{"internal/sqlstore", `import "github.com/jackc/pgx/v55"`, "may not import github.com/jackc/pgx/v55"},
		{"internal/loop", `import "time"; var t = time.NewTicker(1)`, ""},
		{"internal/app", `import ("sidetone/internal/sqlstore"; "sidetone/internal/httpapi"; "example.com/x")`, ""},
		{"internal/app", `import "database/sql/driver"`, "only sqlstore speaks SQL"},
		{"cmd/sidetone", `import "sidetone/internal/sqlstore"`, "cmd/sidetone may not import internal/sqlstore"},
		{"internal/util", `import "fmt"`, "internal/util is in no layer"},
	} {
		got := strings.Join(violations(c.dir, "x.go", "package x; "+c.src), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: %q, want %q", c.dir, c.src, got, c.want)
		}
	}
}
