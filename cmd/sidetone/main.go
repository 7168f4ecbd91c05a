// Command sidetone is the observability server for voice and text agents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"sidetone/internal/app"
	"sidetone/internal/config"
	"sidetone/internal/demo"
)

const usage = `usage: sidetone COMMAND

  serve       receive reports, serve the API and the dashboard
  worker      evaluate alert rules, deliver webhooks and move recordings only
  migrate     bring the database schema up to date and exit
  recordings  check where recordings are, or move them (sidetone recordings -h)
  demo        send sample calls to a running server (sidetone demo -h)
  version     print the version

Settings are environment variables: see .env.example. Only DATABASE_URL is required.
`

func main() {
	os.Exit(run(stoppable(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run executes one command and gives the exit code: 0, 1 when the command failed, 2 for wrong arguments or settings.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		args = []string{""}
	}
	name, rest := args[0], args[1:]
	start, ok := map[string]func(context.Context, config.Config, *slog.Logger) error{
		"serve": app.Serve, "worker": app.Worker, "migrate": app.Migrate,
	}[name]
	switch {
	case ok && len(rest) == 0:
		return process(ctx, name, start, getenv, stderr)
	case name == "recordings":
		start, err := app.ParseRecordings(rest, stdout, stderr)
		switch {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprint(stdout, app.RecordingsUsage)
			return 0
		case err != nil:
			fmt.Fprintf(stderr, "sidetone recordings: %v\n\n%s", err, app.RecordingsUsage)
			return 2
		}
		return process(ctx, name, start, getenv, stderr)
	case name == "demo":
		if err := demo.Run(ctx, rest, stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "sidetone demo:", err)
			return 1
		}
		return 0
	case name == "version" && len(rest) == 0:
		fmt.Fprintln(stdout, "sidetone", buildVersion())
		return 0
	case name == "help" || name == "-h" || name == "-help" || name == "--help":
		fmt.Fprint(stdout, usage)
		return 0
	case name != "":
		fmt.Fprintf(stderr, "sidetone: unknown command %q\n", strings.Join(args, " "))
	}
	fmt.Fprint(stderr, usage)
	return 2
}

// process loads the settings and runs a long-lived command until ctx ends or it fails.
func process(ctx context.Context, name string, start func(context.Context, config.Config, *slog.Logger) error,
	getenv func(string) string, stderr io.Writer) int {
	cfg, warnings, err := config.Load(getenv, os.ReadFile)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	cfg.Version = buildVersion()
	log := newLogger(cfg, stderr)
	log.Info("sidetone "+name, "version", cfg.Version)
	log.Debug("settings", "settings", cfg)
	for _, w := range warnings {
		log.Warn(w.Message, "variable", w.Variable)
	}
	if err := start(ctx, cfg, log); err != nil {
		log.Error(name+" failed", "error", err)
		return 1
	}
	return 0
}
