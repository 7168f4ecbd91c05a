package demo

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a phase is: a bar on a terminal, a line per tenth anywhere else.
type progress struct {
	out   io.Writer
	label string
	total int
	bar   *progressbar.ProgressBar // nil when out is not a terminal

	mu   sync.Mutex
	done int
}

func newProgress(out io.Writer, label string, total int) *progress {
	p := &progress{out: out, label: label, total: total}
	if isTerminal(out) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription(fmt.Sprintf("%-28s", label)),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(out) }))
	}
	return p
}

// step counts one finished piece of work.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn must not stop the work
		return
	}
	if tenth := max(1, p.total/10); p.done%tenth == 0 && p.done+tenth <= p.total || p.done == p.total {
		fmt.Fprintf(p.out, "%s: %d of %d\n", p.label, p.done, p.total)
	}
}

// abandon ends the line of an unfinished bar so that what follows starts on its own.
func (p *progress) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && p.done < p.total {
		fmt.Fprintln(p.out)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
