package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
)

// watchStatus goes on after an error, to show when the file server comes back.
func watchStatus(ctx context.Context, e *Env, src *place.Source, o *statusOptions) error {
	sigs := console.CatchSignals()
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	w := &watching{env: e, o: o}
	if console.IsTerminal(e.Stdout) && !o.JSON {
		keys, restore := console.Keys(e.Stdin)
		defer restore()
		w.paged, w.keys = true, keys
	}
	for {
		s, err := o.look(ctx, e, src)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			w.last, w.trouble = w.paced(s), ""
		case w.paged && w.last != nil:
			w.trouble = show.Explain(err)
		default:
			e.Say("%s", show.Explain(err))
		}
		if err := w.show(); err != nil {
			return err
		}
		if ended, err := w.wait(ctx); ended {
			return err
		}
	}
}

// watching is the state between looks.
type watching struct {
	env     *Env
	o       *statusOptions
	paged   bool // it is a terminal
	keys    <-chan byte
	page    int
	last    observation
	trouble string // why the last look failed

	// The number of ended jobs at the first look, and its time.
	before int
	since  time.Time
}

// paced adds the pace of a batch's list.
func (w *watching) paced(s observation) observation {
	r, one := s.(statusReport)
	if !one || r.Results == nil || r.Results.Batch == nil {
		return s
	}
	p := r.Results.Batch
	if w.since.IsZero() || p.Ended() < w.before { // results may have been forgotten
		w.before, w.since = p.Ended(), time.Now()
	}
	r.pace = show.Pace(p.Ended(), w.before, p.Jobs, time.Since(w.since))
	return r
}

// wait waits for the next look and handles keys meanwhile. The key q, or ctx, ends the watch.
func (w *watching) wait(ctx context.Context) (ended bool, err error) {
	next := time.NewTimer(w.o.every.Value)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, context.Cause(ctx)
		case <-next.C:
			if w.keys == nil {
				w.page++
			}
			return false, nil
		case key, open := <-w.keys:
			switch {
			case !open:
				w.keys = nil
			case key == 'q':
				return true, nil
			default:
				w.turn(key)
				if err := w.show(); err != nil {
					return true, err
				}
			}
		}
	}
}

func (w *watching) turn(key byte) {
	switch key {
	case ' ', 'n':
		w.page++
	case 'b', 'p':
		w.page--
	}
}

// show draws the last look.
func (w *watching) show() error {
	if w.last == nil {
		return nil
	}
	if !w.paged {
		return w.o.show(w.env, w.last)
	}
	return w.env.Redraw(w.lines(show.Size(w.env.Stdout)))
}

// lines formats a screen: the heading, a page of rows, and the remarks.
func (w *watching) lines(columns, height int) []string {
	s := w.last.screen(w.o)
	head := []string{fmt.Sprintf("%s  every %s", time.Now().Format(time.TimeOnly), w.o.every.Value)}
	if w.trouble != "" {
		head[0] += "  " + w.trouble
	}
	missing := w.last.missing()
	foot := s.remarks
	for _, text := range missing[:min(len(missing), maxWarnings)] {
		foot = append(foot, "warning: "+text)
	}
	rows := s.table.Lines(columns)
	if len(rows) > 0 {
		head, rows = append(head, "", rows[0]), rows[1:]
	} else if s.empty != "" {
		head = append(head, "", s.empty)
	}
	if len(s.results) > 1 {
		rows = append(append(rows, ""), s.results.Lines(columns)...)
	}
	room := max(height-len(head)-len(foot)-1, 1) // the last line stays free for the cursor
	head, rows = w.onePage(head, rows, room)
	lines := append(append(head, rows...), foot...)
	for i, line := range lines {
		lines[i] = show.Fitting(strings.TrimRight(line, " "), columns)
	}
	return lines[:min(len(lines), max(height-1, 1))]
}

// onePage returns the rows of the current page, and adds its number to the heading.
func (w *watching) onePage(head, rows []string, room int) ([]string, []string) {
	pages := max((len(rows)+room-1)/room, 1)
	w.page = ((w.page % pages) + pages) % pages
	if pages > 1 {
		head[0] += fmt.Sprintf("  page %d of %d", w.page+1, pages)
		if w.keys != nil {
			head[0] += " (space, b, q)"
		}
	}
	from := w.page * room
	return head, rows[from:min(from+room, len(rows))]
}
