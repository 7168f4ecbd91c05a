// Package app wires one process together and runs it: the only package that knows all the others.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"sidetone/internal/config"
	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/httpapi"
	"sidetone/internal/loop"
	"sidetone/internal/promstats"
	"sidetone/internal/report"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
	"sidetone/internal/webui"
)

const (
	// drainTimeout bounds how long a stopping process waits for requests and deliveries in flight.
	drainTimeout = 30 * time.Second
	// stagingAge is how old an unfinished upload must be to be somebody's remains: far longer than an upload may take.
	stagingAge = 6 * time.Hour
	// startRetry is how often a server that is up asks a database that was away at start.
	startRetry = 2 * time.Second
	// indexPause is how long queued words wait for company before they are indexed; a search does not wait for it.
	indexPause = 2 * time.Second
	// logPatience is how long log records wait for a database that is away: the Python SDK gives up after 10 s.
	logPatience = 8 * time.Second
	logPause    = 400 * time.Millisecond
	// silencePause is how often the server looks for calls that fell silent.
	silencePause = time.Minute
)

// App is one process: its resources and how to let go of them.
type App struct {
	cfg   config.Config
	log   *slog.Logger
	store *sqlstore.Store
	stats *promstats.Stats
	stops []stop

	server   *http.Server
	listener net.Listener
}

type stop struct {
	name string
	f    func(context.Context) error
}

// onStop registers what Close does for a resource, in reverse order of registration.
func (a *App) onStop(name string, f func(context.Context) error) {
	a.stops = append(a.stops, stop{name, f})
}

// New opens the resources that serve and worker share. A PostgreSQL server that is away is no error: the process
// starts, answers 503 and keeps trying.
func New(cfg config.Config, log *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, log: log}
	var err error
	var stats *promstats.Stats
	a.store, err = sqlstore.Open(cfg.Database.Engine, cfg.Database.Path, cfg.Database.URL, sqlstore.Observer{
		Batch: func(kind string, n int) { stats.Batch(kind, n) }})
	if err != nil {
		return nil, err
	}
	a.onStop("database", func(context.Context) error { return a.store.Close() })
	stats = promstats.New(cfg.Version, runtime.Version(), cfg.Database.Engine, func() []promstats.Pool {
		var out []promstats.Pool
		for _, p := range a.store.Pools() {
			out = append(out, promstats.Pool(p))
		}
		return out
	})
	a.stats = stats
	return a, nil
}

// migrate brings the schema up to date and says what it did.
func (a *App) migrate(ctx context.Context) error {
	applied, err := a.store.Migrate(ctx, time.Now())
	for _, name := range applied {
		a.log.Info("migration applied", "name", name)
	}
	return err
}

// prepare migrates at start. A database that is away is asked again in the background until it is back.
func (a *App) prepare(ctx context.Context) error {
	if !a.cfg.AutoMigrate {
		return nil
	}
	err := a.migrate(ctx)
	if err == nil || !errs.Is(err, errs.Unavailable) {
		return err
	}
	a.log.Warn("the database is away; the server starts and keeps trying", "error", err)
	retry, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(startRetry)
		defer t.Stop()
		for {
			select {
			case <-retry.Done():
				return
			case <-t.C:
			}
			if err := a.migrate(retry); err == nil {
				a.log.Info("the database is back")
				return
			} else if !errs.Is(err, errs.Unavailable) {
				a.log.Error("migration failed", "error", err)
				return
			}
		}
	}()
	a.onStop("migration", func(context.Context) error { cancel(); <-done; return nil })
	return nil
}

// background runs f until the process stops; f returns when its context ends.
func (a *App) background(name string, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	a.onStop(name, func(context.Context) error { cancel(); <-done; return nil })
}

// upkeep is what a server does beside answering: indexing words for the search and ending calls that fell silent.
func (a *App) upkeep(sessions *session.Service) {
	a.background("search index", func(ctx context.Context) {
		loop.OnDemand(ctx, a.store.IndexWanted(), indexPause, func(ctx context.Context, _ time.Time) (next time.Time) {
			if err := a.store.IndexWords(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("words for the search could not be indexed; that is tried again", "error", err)
			}
			return next
		})
	})
	a.background("silent sessions", func(ctx context.Context) {
		loop.Every(ctx, silencePause, func(ctx context.Context, now time.Time) {
			n, err := sessions.EndSilent(ctx, now)
			if err != nil && ctx.Err() == nil {
				a.log.Warn("silent sessions could not be ended", "error", err)
			}
			if n > 0 {
				a.log.Info("silent sessions ended", "count", n)
			}
		}, nil)
	})
}

// listen builds the HTTP side and binds the port.
func (a *App) listen() error {
	prices, err := loadPrices(a.cfg.PricesFile)
	if err != nil {
		return err
	}
	recordings, err := a.openRecordings()
	if err != nil {
		return err
	}
	recordings.keep()
	sessions := session.NewService(a.store, recordings.keeper, report.ParseDoc, prices.Session, a.log)
	a.upkeep(sessions)
	handler, err := httpapi.New(httpapi.Deps{
		Sessions: sessions, Alerts: a.alerting(a.cfg.SweepInline), Evals: eval.NewService(a.store.Evals(), prices.LLM),
		Auth: httpapi.NewAuth(a.cfg.BasicUser, a.cfg.BasicPass, a.cfg.LiveKitKey, a.cfg.LiveKitSecret, time.Now,
			httpapi.WriteError),
		Log: a.log, Now: time.Now,
		Ready: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := a.store.Ready(ctx); err != nil {
				return err
			}
			return recordings.dir.Check(ctx)
		},
		Recordings: recordings.state, RedirectRecordings: a.cfg.S3.Enabled() && a.cfg.S3.Redirect,
		Metrics: a.stats.Handler(), Dashboard: webui.Handler(),
		Patiently: func(ctx context.Context, f func() error) error {
			return loop.Patiently(ctx, logPatience, logPause, func(err error) bool { return errs.Is(err, errs.Unavailable) }, f)
		},
		DroppedTelemetry: a.stats.DroppedTelemetry,
		Observe: func(r httpapi.Request) {
			a.stats.Request(r.Route, r.Method, r.Status, r.BytesIn, r.BytesOut, r.Duration)
		},
		Version: a.cfg.Version, BasicAuth: a.cfg.BasicEnabled(), LiveKitAuth: a.cfg.BearerEnabled(),
		MaxRecordingBytes: a.cfg.MaxRecordingBytes, AllowedOrigins: a.cfg.CORSOrigins,
	})
	if err != nil {
		return err
	}
	a.listener, err = net.Listen("tcp", net.JoinHostPort(a.cfg.Host, strconv.Itoa(a.cfg.Port)))
	if err != nil {
		return fmt.Errorf("PORT %d cannot be used: %w", a.cfg.Port, err)
	}
	a.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug)}
	a.onStop("http", func(ctx context.Context) error {
		if err := a.server.Shutdown(ctx); err != nil {
			return errors.Join(err, a.server.Close())
		}
		return nil
	})
	return nil
}

// Addr is where the server listens, host:port.
func (a *App) Addr() string { return a.listener.Addr().String() }

// Run serves until ctx ends or something fails, then lets go of everything.
func (a *App) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	if a.server != nil {
		a.log.Info("listening", "addr", a.Addr())
		go func() {
			if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	} else {
		a.log.Info("working")
	}
	var err error
	select {
	case <-ctx.Done():
		a.log.Info("stopping: finishing what is in flight")
	case err = <-failed:
	}
	return errors.Join(err, a.Close())
}

// Close lets go of everything in reverse order, each bounded by the drain timeout.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var all error
	for i := len(a.stops) - 1; i >= 0; i-- {
		if err := a.stops[i].f(ctx); err != nil {
			a.log.Error("stopping failed", "part", a.stops[i].name, "error", err)
			all = errors.Join(all, err)
		}
	}
	a.stops = nil
	return all
}

// Handler is the HTTP side, for tests and benchmarks that need no socket.
func (a *App) Handler() http.Handler { return a.server.Handler }
