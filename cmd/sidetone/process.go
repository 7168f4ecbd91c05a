package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"sidetone/internal/config"
)

// version is set by the Makefile with -ldflags -X; a plain "go build" leaves it empty.
var version string

// buildVersion is the version of the build with the toolchain and platform it was made for.
func buildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return describe(version, info) + " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

// describe prefers what the build was told, then the module version that "go install" records, then the commit.
func describe(told string, info *debug.BuildInfo) string {
	if told != "" {
		return told
	}
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return "devel"
	}
	return commit + dirty
}

// newLogger writes lines of at least cfg.LogLevel in the format of cfg.
func newLogger(cfg config.Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// stoppable is a context that the first SIGTERM or SIGINT ends; the second ends the process at once.
func stoppable() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(130) // what shells use for an interrupted program
	}()
	return ctx
}
