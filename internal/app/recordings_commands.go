package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"sidetone/internal/config"
	"sidetone/internal/recording"
)

// RecordingsUsage is what `sidetone recordings -h` prints.
const RecordingsUsage = `usage: sidetone recordings check [--fix]
       sidetone recordings move --to s3|dir

  check   compare the database with the recordings folder and, with object storage, the bucket. It reports
          recordings that are missing, files and objects that no session needs, and copies that are there twice;
          --fix repairs what can be repaired and deletes only what no session needs
  move    copy all recordings to the bucket (s3) or to the folder (dir), verify each, switch to it and remove the
          original. Interrupted, it goes on where it was when it is run again

Both may run beside a server, on a machine that has its RECORDINGS_DIR. The exit code is 1 when something is left
to do.
`

// ErrLeft is the error of a recordings command that did its work but could not put everything right.
var ErrLeft = errors.New("something is left to do")

// ParseRecordings reads the arguments of the recordings command and returns what runs it. The error is flag.ErrHelp or says
// what is wrong.
func ParseRecordings(args []string, stdout, stderr io.Writer) (func(context.Context, config.Config, *slog.Logger) error, error) {
	if len(args) == 0 {
		return nil, errors.New("which: check or move?")
	}
	flags := flag.NewFlagSet("recordings "+args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch args[0] {
	case "check":
		fix := flags.Bool("fix", false, "")
		if err := parseAll(flags, args[1:]); err != nil {
			return nil, err
		}
		return func(ctx context.Context, cfg config.Config, log *slog.Logger) error {
			return withRecordings(ctx, cfg, log, func(r *recordings) error { return r.check(ctx, *fix, stdout, stderr) })
		}, nil
	case "move":
		to := flags.String("to", "", "")
		if err := parseAll(flags, args[1:]); err != nil {
			return nil, err
		}
		place := recording.Place(*to)
		if place != recording.InObjects && place != recording.InFolder {
			return nil, fmt.Errorf("--to %q: allowed: s3 or dir", *to)
		}
		return func(ctx context.Context, cfg config.Config, log *slog.Logger) error {
			return withRecordings(ctx, cfg, log, func(r *recordings) error { return r.move(ctx, place, stdout, stderr) })
		}, nil
	case "-h", "-help", "--help", "help":
		return nil, flag.ErrHelp
	}
	return nil, fmt.Errorf("unknown: %q; allowed: check or move", args[0])
}

func parseAll(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected: %q", flags.Arg(0))
	}
	return nil
}

// withRecordings opens what a command needs, and lets go of it.
func withRecordings(ctx context.Context, cfg config.Config, log *slog.Logger, f func(*recordings) error) error {
	a, err := New(cfg, log)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.store.Ready(ctx); err != nil {
		return err
	}
	r, err := a.openRecordings()
	if err != nil {
		return err
	}
	if r.s3 != nil {
		if err := r.s3.Check(ctx); err != nil {
			return err
		}
	}
	return f(r)
}

func (r *recordings) check(ctx context.Context, fix bool, stdout, stderr io.Writer) error {
	if err := r.dir.CleanStaging(time.Now(), stagingAge); err != nil {
		return err
	}
	bar := newBar(stderr, "comparing", recording.Shards)
	result, err := r.keeper.Check(ctx, time.Now(), fix, func(f recording.Finding) {
		bar.Clear()
		fmt.Fprintln(stdout, f)
	}, func() { bar.Add(1) })
	bar.Finish()
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d recordings: %d wait for object storage, %d in folders of other servers; %d findings, %d left\n",
		result.Recordings, result.Waiting, result.Elsewhere, result.Findings, result.Unfixed)
	if result.Unfixed > 0 {
		return ErrLeft
	}
	return nil
}

func (r *recordings) move(ctx context.Context, to recording.Place, stdout, stderr io.Writer) error {
	totals, err := r.app.store.CountPlaces(ctx)
	if err != nil {
		return err
	}
	var bytes int64
	for _, t := range totals {
		bytes += t.Bytes
	}
	bar := newBar(stderr, "moving", max(bytes, 1), progressbar.OptionShowBytes(true))
	result, err := r.keeper.Move(ctx, to, func(n int64) { bar.Add64(n) }, func(key string, err error) {
		bar.Clear()
		fmt.Fprintf(stdout, "%s: %v\n", key, err)
	})
	bar.Finish()
	if err != nil {
		return err
	}
	r.keeper.Round(ctx, time.Now()) // originals that could not be removed at once
	fmt.Fprintf(stdout, "%d recordings moved (%d bytes), %d failed, %d in folders of other servers\n",
		result.Moved.Count, result.Moved.Bytes, result.Failed, result.Elsewhere)
	if result.Failed > 0 || result.Elsewhere > 0 {
		return ErrLeft
	}
	return nil
}

// newBar draws progress on a terminal and nothing anywhere else.
func newBar(w io.Writer, label string, total int64, more ...progressbar.Option) *progressbar.ProgressBar {
	f, ok := w.(*os.File)
	visible := ok && term.IsTerminal(int(f.Fd()))
	return progressbar.NewOptions64(total, append([]progressbar.Option{progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(label),
		progressbar.OptionSetWidth(30), progressbar.OptionSetVisibility(visible), progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionOnCompletion(func() {
			if visible {
				fmt.Fprintln(w)
			}
		})}, more...)...)
}
