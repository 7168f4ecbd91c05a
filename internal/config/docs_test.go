package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite .env.example and docs/configuration.md from the table of settings")

// example is a value for the setting in .env.example, where the default says nothing.
var example = map[string]string{
	"DATABASE_URL":         "sqlite:./data/sidetone.db",
	"CORS_ALLOWED_ORIGINS": "https://app.example.com",
	"HOST":                 "127.0.0.1",
}

// TestDocumentsMatchTheTable holds the two documents equal to the table; `go test ./internal/config -update` writes them.
func TestDocumentsMatchTheTable(t *testing.T) {
	for path, want := range map[string]string{"../../.env.example": envExample(), "../../docs/configuration.md": markdown()} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the table of settings: run go test ./internal/config -update", path)
		}
	}
}

// TestEnvExampleLoads reads the example as a shell would, with every setting switched on.
func TestEnvExampleLoads(t *testing.T) {
	env := map[string]string{}
	for line := range strings.Lines(envExample()) {
		if name, value, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "="); found && !strings.Contains(name, " ") {
			env[name] = value
		}
	}
	if len(env) != len(Settings) {
		t.Errorf("%d variables, want %d", len(env), len(Settings))
	}
	if _, _, err := load(env, nil); err != nil {
		t.Error(err)
	}
}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings {
		if seen[s.Name] || s.Doc == "" || s.Allowed == "" || s.Group == "" || s.apply == nil || strings.ContainsAny(s.Doc+s.Allowed, "\n|") {
			t.Errorf("%s is twice in the table, lacks a text, or has one that breaks the generated documents", s.Name)
		}
		seen[s.Name] = true
	}
}

// groups calls heading for each new group and row for each setting, in order.
func groups(heading func(string), row func(Setting)) {
	group := ""
	for _, s := range Settings {
		if s.Group != group {
			group = s.Group
			heading(group)
		}
		row(s)
	}
}

func envExample() string {
	var b strings.Builder
	b.WriteString("# Settings of Sidetone. Generated from internal/config; docs/configuration.md says the same as a table.\n" +
		"# Only DATABASE_URL is required. A commented line shows the default, or an example where nothing is the default.\n" +
		"# For a variable marked [file], NAME_FILE may instead name a file that holds the value.\n")
	groups(func(g string) { fmt.Fprintf(&b, "\n# --- %s\n", g) }, func(s Setting) {
		var marks string
		if s.Required {
			marks += " [required]"
		}
		if s.Secret {
			marks += " [file]"
		}
		fmt.Fprintf(&b, "\n#%s %s\n# Allowed: %s.\n", marks, plainText(s.Doc), plainText(s.Allowed))
		value := s.Default
		if value == "" {
			value = example[s.Name]
		}
		if !s.Required {
			b.WriteString("#")
		}
		fmt.Fprintf(&b, "%s=%s\n", s.Name, value)
	})
	return b.String()
}

func plainText(markdown string) string { return strings.ReplaceAll(markdown, "`", "") }

func markdown() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"Generated from the table in `internal/config`; `go test ./internal/config -update` writes it again.\n\n" +
		"Sidetone is configured by environment variables alone. Only `DATABASE_URL` is required. An empty value counts as unset. A wrong value stops the\n" +
		"start with one line that names the variable, the value and what is allowed, and exit code 2.\n\n" +
		"Authentication and object storage switch themselves on when both variables of a pair are set. Half a pair leaves the feature off, with a warning\n" +
		"that names the missing variable. With no pair at all everything is open, and a warning says so.\n\n" +
		"Variables marked with a key (🔑) are secrets: logs never show them, and `NAME_FILE` may name a file that holds the value instead, as Docker and\n" +
		"Kubernetes mount secrets (for example `AGENT_OBSERVABILITY_PASS_FILE=/run/secrets/pass`). Line breaks at the end of the file are ignored; setting\n" +
		"both is an error.\n")
	groups(func(g string) {
		fmt.Fprintf(&b, "\n## %s\n\n| variable | default | meaning | allowed |\n|---|---|---|---|\n", g)
	}, func(s Setting) {
		def, mark := "", ""
		switch {
		case s.Required:
			def = "required"
		case s.Default != "":
			def = "`" + s.Default + "`"
		}
		if s.Secret {
			mark = " 🔑"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", s.Name, mark, def, s.Doc, s.Allowed)
	})
	return b.String()
}
