package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
)

// watchStatus continues after an error, to show when the file server is back.
func watchStatus(ctx context.Context, e *Env, src *place.Source, o *statusOptions) error {
	return watch(ctx, e, o, func(ctx context.Context) (observation, error) { return o.look(ctx, e, src) })
}

func watch(ctx context.Context, e *Env, o *statusOptions, look func(context.Context) (observation, error)) error {
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
		s, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			_, counts := rowsOf(s.reports(), w.order, true)
			w.pace.add(time.Now(), counts.ended)
			w.last, w.trouble = s, ""
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

// watching is the state between refreshes.
type watching struct {
	env     *Env
	o       *statusOptions
	paged   bool // the output is a terminal
	keys    <-chan byte
	page    int
	order   rowOrder
	only    bool   // only what needs attention
	find    string // only rows with this text
	typing  bool   // find is being typed
	size    [2]int
	last    observation
	trouble string // why the last refresh failed

	pace pace
}

// resizeEvery is how soon the screen adapts to a resized terminal.
const resizeEvery = 250 * time.Millisecond

// wait waits for the next refresh, and handles keys meanwhile. The key q, or ctx, ends the watch.
func (w *watching) wait(ctx context.Context) (ended bool, err error) {
	next, sizes := time.NewTimer(w.o.every.Value), time.NewTicker(resizeEvery)
	defer next.Stop()
	defer sizes.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, context.Cause(ctx)
		case <-next.C:
			if w.keys == nil {
				w.page++
			}
			return false, nil
		case <-sizes.C:
			if !w.paged || w.last == nil || w.size == w.sizeNow() {
				continue
			}
		case key, open := <-w.keys:
			switch {
			case !open:
				w.keys = nil
				continue
			case key == 'q' && !w.typing:
				return true, nil
			case w.typing:
				w.typed(key)
			default:
				w.turn(key)
			}
		}
		if err := w.show(); err != nil {
			return true, err
		}
	}
}

func (w *watching) sizeNow() [2]int {
	columns, height := show.Size(w.env.Stdout)
	return [2]int{columns, height}
}

func (w *watching) turn(key byte) {
	switch key {
	case ' ', 'n':
		w.page++
	case 'b', 'p':
		w.page--
	case 's':
		w.order, w.page = (w.order+1)%orders, 0
	case 'f':
		w.only, w.page = !w.only, 0
	case '/':
		w.find, w.typing, w.page = "", true, 0
	}
}

// typed handles a key of the search text: Enter accepts it, Escape clears it.
func (w *watching) typed(key byte) {
	w.page = 0
	switch key {
	case '\r', '\n':
		w.typing = false
	case '\x1b':
		w.find, w.typing = "", false
	case '\b', '\x7f':
		if _, size := utf8.DecodeLastRuneInString(w.find); size > 0 {
			w.find = w.find[:len(w.find)-size]
		}
	default:
		w.find += string([]byte{key})
	}
}

// keysLine lists the keys, or shows the text that is being typed.
func (w *watching) keysLine() string {
	if w.typing {
		return "find: " + w.find + "_  (Enter, Esc)"
	}
	find := "find"
	if w.find != "" {
		find = fmt.Sprintf("find (%s)", w.find)
	}
	return fmt.Sprintf("s sort (%s)  f %s  / %s  space b page  q quit", w.order, map[bool]string{true: "show all", false: "failed only"}[w.only], find)
}

// show draws the last observation.
func (w *watching) show() error {
	if w.last == nil {
		return nil
	}
	if !w.paged {
		return w.o.show(w.env, w.last)
	}
	w.size = w.sizeNow()
	return w.env.Redraw(w.lines(w.size[0], w.size[1]))
}

// lines formats a screen: the heading, a page of rows, the remarks, and the keys.
func (w *watching) lines(columns, height int) []console.ScreenLine {
	rows, counts := rowsOf(w.last.reports(), w.order, w.o.listsAll())
	rows, more := filtered(found(rows, w.find), w.only)
	head := w.head(counts, columns)
	s := w.last.screen(w.o)
	var foot, keys []console.ScreenLine
	if more > 0 {
		foot = append(foot, console.ScreenLine{Text: fmt.Sprintf("and %d more failures (f)", more), Color: console.Red})
	}
	missing := w.last.missing()
	for _, text := range missing[:min(len(missing), maxWarnings)] {
		foot = append(foot, console.ScreenLine{Text: "warning: " + text, Color: console.Yellow})
	}
	for _, text := range s.remarks {
		foot = append(foot, console.ScreenLine{Text: text})
	}
	if w.keys != nil {
		keys = append(keys, console.ScreenLine{Text: w.keysLine(), Color: console.Bold})
	}
	heading, body := rowLines(rows, columns)
	switch {
	case len(rows) > 0:
		head = append(head, console.ScreenLine{}, console.ScreenLine{Text: heading, Color: console.Bold})
	case w.find != "":
		head = append(head, console.ScreenLine{}, console.ScreenLine{Text: fmt.Sprintf("nothing has the text %q", w.find)})
	case w.only && counts.failed+counts.retry == 0:
		head = append(head, console.ScreenLine{}, console.ScreenLine{Text: "nothing has failed, and no holder misses heartbeats"})
	case w.only: // --results lists the failures below
		head = append(head, console.ScreenLine{}, console.ScreenLine{Text: "no holder misses heartbeats"})
	case s.empty != "":
		head = append(head, console.ScreenLine{}, console.ScreenLine{Text: s.empty})
	}
	if len(s.results) > 1 {
		body = append(body, console.ScreenLine{})
		for _, line := range s.results.Lines(columns) {
			body = append(body, console.ScreenLine{Text: line})
		}
	}
	height = max(height-1, 1) // the last line stays free for the cursor
	if over := len(head) + 1 + len(keys) - height; over > 0 {
		head = slices.Delete(head, 1, min(1+over, len(head))) // the counts, a row and the keys stay
	}
	room := max(height-len(head)-len(keys), 1)
	foot = foot[:min(len(foot), max(room/2, room-len(body)))]
	head, body = w.onePage(head, body, max(room-len(foot), 1))
	lines := slices.Concat(head, body, foot, keys)
	for i := range lines {
		lines[i].Text = show.Fitting(strings.TrimRight(lines[i].Text, " "), columns)
	}
	return lines[:min(len(lines), height)]
}

// head returns the lines above the rows.
func (w *watching) head(counts statusCounts, columns int) []console.ScreenLine {
	head := []console.ScreenLine{{Text: counts.line(time.Now()), Color: console.Bold}}
	if w.trouble != "" {
		head = append(head, console.ScreenLine{Text: w.trouble, Color: console.Yellow})
	}
	if r, one := w.last.(statusReport); one && r.Results != nil && r.Results.Batch != nil {
		head = append(head, console.ScreenLine{Text: show.Gauge(r.Results.Batch, columns)})
	}
	if text := w.pace.line(); text != "" {
		head = append(head, console.ScreenLine{Text: text})
	}
	return head
}

// onePage returns the rows of the current page, and adds its number to the heading.
func (w *watching) onePage(head, rows []console.ScreenLine, room int) ([]console.ScreenLine, []console.ScreenLine) {
	pages := max((len(rows)+room-1)/room, 1)
	w.page = ((w.page % pages) + pages) % pages
	if pages > 1 {
		head[0].Text += fmt.Sprintf("  page %d of %d", w.page+1, pages)
	}
	from := w.page * room
	return head, rows[from:min(from+room, len(rows))]
}
