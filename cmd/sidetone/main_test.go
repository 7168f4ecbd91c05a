package main

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"sidetone/internal/config"
)

// execute runs a command line with an environment and gives the exit code and both outputs.
func execute(env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = run(context.Background(), args, func(name string) string { return env[name] }, &out, &err)
	return code, out.String(), err.String()
}

func TestCommandLines(t *testing.T) {
	for line, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"":                {2, "", "usage: sidetone COMMAND"},
		"help":            {0, "usage: sidetone COMMAND", ""},
		"--help":          {0, "usage: sidetone COMMAND", ""},
		"version":         {0, "sidetone ", ""},
		"version x":       {2, "", `unknown command "version x"`},
		"start":           {2, "", `unknown command "start"`},
		"serve now":       {2, "", `unknown command "serve now"`},
		"serve":           {2, "", "DATABASE_URL is required"},
		"worker":          {2, "", "DATABASE_URL is required"},
		"migrate":         {2, "", "DATABASE_URL is required"},
		"demo --no-such":  {1, "", "sidetone demo: "},
		"demo --url ://x": {1, "", "sidetone demo: "},
	} {
		code, stdout, stderr := execute(nil, strings.Fields(line)...)
		if code != want.code || !strings.Contains(stdout, want.stdout) || !strings.Contains(stderr, want.stderr) {
			t.Errorf("sidetone %s: code %d, stdout %q, stderr %q; want %+v", line, code, stdout, stderr, want)
		}
		if want.stdout == "" && stdout != "" && !strings.HasPrefix(line, "demo") {
			t.Errorf("sidetone %s: unexpected output %q", line, stdout)
		}
	}
}

func TestEverySettingProblemIsALine(t *testing.T) {
	code, _, stderr := execute(map[string]string{"PORT": "http", "LOG_LEVEL": "loud"}, "serve")
	if lines := strings.Split(strings.TrimSpace(stderr), "\n"); code != 2 || len(lines) != 3 {
		t.Errorf("code %d, %d lines; want 2 and one line per problem:\n%s", code, len(lines), stderr)
	}
}

func TestProcess(t *testing.T) {
	env := map[string]string{"DATABASE_URL": "postgres://u:hush@h/db", "LOG_FORMAT": "json", "LOG_LEVEL": "debug"}
	var got config.Config
	for _, want := range []error{nil, errors.New("the port is taken")} {
		var stderr strings.Builder
		code := process(t.Context(), "serve", func(_ context.Context, cfg config.Config, _ *slog.Logger) error {
			got = cfg
			return want
		}, func(name string) string { return env[name] }, &stderr)
		if (code == 1) != (want != nil) || code > 1 {
			t.Errorf("exit code %d for error %v", code, want)
		}
		if got.Version == "" || got.Database.URL != env["DATABASE_URL"] {
			t.Errorf("the process got %v", got)
		}
		for _, part := range []string{`"level":"INFO"`, `"level":"WARN"`, "no authentication", `"level":"DEBUG"`} {
			if !strings.Contains(stderr.String(), part) {
				t.Errorf("the log lacks %q:\n%s", part, &stderr)
			}
		}
		if want != nil && !strings.Contains(stderr.String(), want.Error()) || strings.Contains(stderr.String(), "hush") {
			t.Errorf("the log hides the error or shows the password:\n%s", &stderr)
		}
	}
}

func TestLogLevelAndFormat(t *testing.T) {
	var b strings.Builder
	log := newLogger(config.Config{LogLevel: slog.LevelWarn}, &b)
	log.Info("quiet")
	log.Warn("loud")
	if got := b.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "level=WARN msg=loud") {
		t.Errorf("got %q", got)
	}
}

func TestDescribe(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		told string
		info *debug.BuildInfo
		want string
	}{
		{"v1.2.3", &debug.BuildInfo{Settings: settings}, "v1.2.3"},
		{"", nil, "unknown"},
		{"", &debug.BuildInfo{}, "devel"},
		{"", &debug.BuildInfo{Main: debug.Module{Version: "v0.9.0"}, Settings: settings}, "v0.9.0"},
		{"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings}, "0123456789ab-dirty"},
		{"", &debug.BuildInfo{Settings: settings[:1]}, "0123456789ab"},
	} {
		if got := describe(c.told, c.info); got != c.want {
			t.Errorf("describe(%q, %v) = %q, want %q", c.told, c.info, got, c.want)
		}
	}
}

// TestSignals runs a process that never finishes draining: the first signal ends its context, the second ends it.
func TestSignals(t *testing.T) {
	if os.Getenv("SIDETONE_TEST_SIGNALS") == "1" {
		ctx := stoppable()
		os.Stdout.WriteString("ready\n")
		<-ctx.Done()
		os.Stdout.WriteString("draining\n")
		select {}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSignals$")
		cmd.Env = append(os.Environ(), "SIDETONE_TEST_SIGNALS=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for _, want := range []string{"ready", "draining"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%v: the process says %q (%v), want %q", sig, lines.Text(), lines.Err(), want)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		err = cmd.Wait()
		if ended := (*exec.ExitError)(nil); !errors.As(err, &ended) || ended.ExitCode() != 130 {
			t.Errorf("%v twice: %v, want exit code 130", sig, err)
		}
	}
}
