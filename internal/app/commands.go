package app

import (
	"context"
	"log/slog"

	"sidetone/internal/config"
)

// NewServer makes a process that receives reports and serves the API and the dashboard, its port bound.
func NewServer(ctx context.Context, cfg config.Config, log *slog.Logger) (*App, error) {
	a, err := New(cfg, log)
	if err != nil {
		return nil, err
	}
	if err := a.prepare(ctx); err != nil {
		a.Close()
		return nil, err
	}
	if err := a.listen(); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Serve runs the server until ctx ends.
func Serve(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	a, err := NewServer(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// Worker evaluates alert rules, delivers webhooks and moves recordings, without HTTP, until ctx ends.
func Worker(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	a, err := New(cfg, log)
	if err != nil {
		return err
	}
	if err := a.prepare(ctx); err != nil {
		a.Close()
		return err
	}
	a.alerting(true)
	if recordings, err := a.openRecordings(); err == nil {
		recordings.keep()
	} else {
		log.Warn("this worker uploads and deletes no recordings", "error", err)
	}
	return a.Run(ctx)
}

// Migrate brings the schema up to date.
func Migrate(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	a, err := New(cfg, log)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.migrate(ctx)
}
