package app

import (
	"context"
	"sync/atomic"
	"time"

	"sidetone/internal/blob"
	"sidetone/internal/httpapi"
	"sidetone/internal/loop"
	"sidetone/internal/promstats"
	"sidetone/internal/recording"
)

const (
	// stallTimeout is how long the object store may be silent in the middle of something.
	stallTimeout = 20 * time.Second
	// keeperPause is how often a process looks for recordings that others left to it.
	keeperPause = 30 * time.Second
	// checkRetry is how often an object store that was refused at start is tried again; checkPause comes after success.
	checkRetry, checkPause = 30 * time.Second, 24 * time.Hour
	spoolTimeout           = 3 * time.Second
)

// recordings is where this process keeps recordings.
type recordings struct {
	app     *App
	dir     *blob.Dir
	s3      *blob.S3 // nil without object storage
	keeper  *recording.Keeper
	refused atomic.Bool // the check at start failed
}

// openRecordings opens the folder and prepares the object store, which may be away.
func (a *App) openRecordings() (*recordings, error) {
	r := &recordings{app: a}
	var err error
	if r.dir, err = blob.OpenDir(a.cfg.RecordingsDir); err != nil {
		return nil, err
	}
	var objects recording.Objects
	if s := a.cfg.S3; s.Enabled() {
		r.s3, err = blob.OpenS3(blob.S3Settings{Bucket: s.Bucket, Region: s.Region, AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey,
			Endpoint: s.Endpoint, Prefix: s.Prefix, Stall: stallTimeout, Now: time.Now})
		if err != nil {
			return nil, err
		}
		objects = r.s3
	}
	r.keeper = recording.NewKeeper(a.store, r.dir, objects, a.log, a.stats.Recordings(r.spoolStats, r.failing))
	a.onStop("recordings", func(context.Context) error { r.keeper.Close(); return nil })
	return r, nil
}

// keep runs what happens to recordings in the background: uploads, deletions and the check of the object store.
func (r *recordings) keep() {
	if err := r.dir.CleanStaging(time.Now(), stagingAge); err != nil {
		r.app.log.Warn("unfinished uploads could not be cleaned up", "error", err)
	}
	r.app.background("recordings in the background", func(ctx context.Context) {
		if err := r.keeper.Start(ctx); err != nil {
			r.app.log.Debug("recordings keep their times for trying again", "error", err)
		}
		loop.OnDemand(ctx, r.keeper.Woken(), keeperPause, r.keeper.Round)
	})
	if r.s3 == nil {
		return
	}
	r.refused.Store(true) // until it has answered
	r.app.background("object store", func(ctx context.Context) {
		loop.OnDemand(ctx, nil, checkPause, func(ctx context.Context, now time.Time) time.Time {
			err := r.s3.Check(ctx)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				r.app.log.Error("recordings wait in "+r.app.cfg.RecordingsDir+" for the object store", "error", err)
				return now.Add(checkRetry)
			case r.refused.Swap(false):
				r.app.log.Info("recordings go to the object store", "bucket", r.app.cfg.S3.Bucket)
			}
			return time.Time{}
		})
	})
}

// failing tells whether the object store is known to be away.
func (r *recordings) failing() bool { return r.s3 != nil && (r.refused.Load() || r.keeper.Failing()) }

func (r *recordings) spoolStats() (promstats.Spool, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), spoolTimeout)
	defer cancel()
	s, err := r.app.store.Spool(ctx)
	if err != nil {
		return promstats.Spool{}, false
	}
	out := promstats.Spool{Count: s.Count, Bytes: s.Bytes}
	if !s.Oldest.IsZero() {
		out.Age = time.Since(s.Oldest)
	}
	return out, true
}

// state is what /ready tells.
func (r *recordings) state(ctx context.Context) (httpapi.RecordingsState, error) {
	s, err := r.app.store.Spool(ctx)
	state := httpapi.RecordingsState{Spool: s, ObjectStore: "off"}
	if r.s3 != nil {
		state.ObjectStore = "ok"
		if r.failing() {
			state.ObjectStore = "failing"
		}
	}
	return state, err
}
