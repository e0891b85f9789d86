package history

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/internal/budget"
	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Limits of what one command reads of a history, whatever was written there: of one file no more than a
// host can write in a day, and of each day its share of the total.
const (
	maxHistory      = 16 << 30  // some minutes
	historyChunk    = 32 << 10  // read at a time
	maxHistoryLine  = 256 << 10 // texts of events are bounded: our lines are less than half as long
	maxHistoryFile  = 1 << 30   // twenty events in each second of a day
	maxHistoryFiles = 4096      // of a day
	maxHistoryOpen  = 64        // at the same time: a process may have 256 descriptors, and no more
)

// Reasons to leave out a file.
var (
	errEndless = errors.New("it contains no line of a history, or none after some point; remove it, or move it away")
	errTooLong = fmt.Errorf("only %d MiB of it are read; move it away", maxHistoryFile>>20)
)

// leftOut reports whether an error is about one file only, so that the others can be read.
func leftOut(err error) bool {
	return errors.Is(err, errEndless) || errors.Is(err, errTooLong) || errors.As(err, new(*groupfiles.SameFileError)) ||
		vfs.Is(err, syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.ENXIO, syscall.EISDIR)
}

// followed is one file of a history.
type followed struct {
	vfs.File   // nil if it is not open
	name, path string
	size       int64 // when it was opened
	read       int64
	over       bool   // no more of it is read
	rest       []byte // an incomplete line: the last one, or reading backwards, the first one
}

func newFollowed(dir vfs.Dir, name string) *followed {
	return &followed{name: name, path: filepath.Join(dir.Path(), name)}
}

func (f *followed) open(once groupfiles.Once, dir vfs.Dir) error {
	file, info, err := once.Open(dir, f.name)
	if err != nil {
		return err
	}
	f.File = file
	if f.read == 0 {
		f.size = info.Size
	}
	return nil
}

// suspend closes the file. After open, reading continues where it was.
func (f *followed) suspend() {
	if f.File != nil {
		_ = f.Close() // only read from
	}
	f.File = nil
}

func (f *followed) close() {
	f.suspend()
	f.rest = nil
}

func (f *followed) end() {
	f.over = true
	f.close()
}

func (f *followed) leftOut(why error) error { return &source.LeftOutError{Part: f.path, Why: why} }

// next reads one piece, and reports whether there may be more. An error, which may come with events,
// is the end.
func (f *followed) next(since time.Time) (events []source.Event, more bool, err error) {
	chunk := make([]byte, historyChunk)
	n, err := f.ReadAt(chunk, f.read)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	f.read += int64(n)
	data := append(f.rest, chunk[:n]...)
	end := bytes.LastIndexByte(data, '\n') + 1
	f.rest = bytes.Clone(data[end:])
	events = eventsIn(data[:end], since)
	switch {
	case len(f.rest) > maxHistoryLine:
		return events, false, errEndless
	case f.read > maxHistoryFile:
		return events, false, errTooLong
	}
	return events, n > 0 && err == nil, nil
}

// previous is next from the end of the file.
func (f *followed) previous(since time.Time) (events []source.Event, more bool, err error) {
	left := f.size - f.read
	chunk := make([]byte, min(historyChunk, left), historyChunk+len(f.rest))
	n, err := f.ReadAt(chunk, left-int64(len(chunk)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	f.read += int64(len(chunk))
	data, begin := append(chunk[:n], f.rest...), 0
	if more = f.read < f.size; more { // the first line is incomplete
		if begin = bytes.IndexByte(data, '\n') + 1; begin == 0 {
			begin = len(data)
		}
	}
	f.rest = bytes.Clone(data[:begin])
	switch events = eventsIn(data[begin:], since); {
	case len(f.rest) > maxHistoryLine:
		return events, false, errEndless
	case f.read > maxHistoryFile:
		return events, false, errTooLong
	}
	return events, more, nil

}

// eventsIn returns the readable events in lines of a history.
func eventsIn(lines []byte, since time.Time) (events []source.Event) {
	for line := range bytes.Lines(lines) {
		if isBefore(line, since) {
			continue
		}
		var e source.Event
		if json.Unmarshal(line, &e) == nil && !e.Time.Before(since) {
			e.Name = source.DecodeName(e.Name)
			events = append(events, e.Bounded()) // another program may have written it
		}
	}
	return events
}

// isBefore reports whether a line is known to be older than since without decoding it, which takes
// most of the time of reading a history.
func isBefore(line []byte, since time.Time) bool {
	text, ok := bytes.CutPrefix(line, []byte(`{"time":"`))
	if !ok || since.IsZero() {
		return false
	}
	text, _, _ = bytes.Cut(text[:min(len(text), maxTimestamp)], []byte(`"`))
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return err == nil && at.Before(since)
}

const maxTimestamp = 64

// History implements source.Journal. It leaves out unreadable lines, such as one that a crash has
// truncated. It reads one day after the other, and the files of a day together.
func (h *Journal) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		if err := h.yieldEvents(ctx, since, false, yield); err != nil && !errors.Is(err, errEnough) {
			yield(source.Event{}, shareddir.OpError("read the history", "", err))
		}
	}
}

// Latest implements source.RecentJournal.
func (h *Journal) Latest(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		if err := h.yieldEvents(ctx, since, true, yield); err != nil && !errors.Is(err, errEnough) {
			yield(source.Event{}, shareddir.OpError("read the history", "", err))
		}
	}
}

// errEnough means that the caller wants no more events.
var errEnough = errors.New("no more events are wanted")

func (h *Journal) yieldEvents(ctx context.Context, since time.Time, backward bool, yield func(source.Event, error) bool) error {
	dir, err := h.files.Find(dirName)
	if err != nil {
		return groupfiles.IgnoreGone(err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	if err := h.files.Refresh(dir); err != nil {
		return groupfiles.IgnoreGone(err)
	}
	names, err := historyFiles(dir, since)
	if err != nil {
		return groupfiles.IgnoreGone(err)
	}
	once, all, most := groupfiles.Once{}, slices.Collect(days(names)), budget.Of(ctx, h.ReadMost)
	if backward {
		slices.Reverse(all)
	}
	for n, day := range all {
		share := most.Share(len(all) - n) // so that a day with too much does not hide others
		files := &merged{dir: dir, since: since, backward: backward, yield: yield, once: once, brief: len(day) > maxHistoryOpen, budget: share}
		err := files.yieldDay(day)
		files.close()
		if err != nil {
			return err
		}
		most.Charge(share)
	}
	return nil
}

// historyFiles returns the files that may have events since a time, in the order of their days.
func historyFiles(dir vfs.Dir, since time.Time) ([]string, error) {
	return shareddir.Names(dir.List, func(name string) bool {
		return strings.HasSuffix(name, historySuffix) && !endsBefore(name, since)
	})
}

// days groups the names of files by day.
func days(names []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for len(names) > 0 {
			day, _, _ := strings.Cut(names[0], ".")
			n := slices.IndexFunc(names, func(name string) bool { return !strings.HasPrefix(name, day+".") })
			if n < 0 {
				n = len(names)
			}
			if !yield(names[:n]) {
				return
			}
			names = names[n:]
		}
	}
}

// fewest keeps the last maxHistoryFiles names, with an error about the others.
func fewest(dir vfs.Dir, names []string) ([]string, error) {
	over := len(names) - maxHistoryFiles
	if over <= 0 {
		return names, nil
	}
	return names[over:], &source.LeftOutError{Part: dir.Path(), Why: fmt.Errorf("%d files of more than %d for a day; move unneeded files away", over, maxHistoryFiles)}
}

// merged is a heap of files that are read together, by the time of their next event. Of each file one
// piece is in memory, sorted by time, because processes of one host do not always write in order.
type merged struct {
	dir      vfs.Dir
	since    time.Time
	backward bool // from the latest event
	yield    func(source.Event, error) bool
	once     groupfiles.Once
	brief    bool // there are many files: each is open only while a piece is read
	budget   *budget.Budget
	files    []*begun
}

type begun struct {
	*followed
	events []source.Event
}

func (m *merged) Len() int { return len(m.files) }
func (m *merged) Less(i, j int) bool {
	a, b := m.files[i].events[0].Time, m.files[j].events[0].Time
	if m.backward {
		a, b = b, a
	}
	return a.Before(b)
}
func (m *merged) Swap(i, j int) { m.files[i], m.files[j] = m.files[j], m.files[i] }
func (m *merged) Push(file any) { m.files = append(m.files, file.(*begun)) }
func (m *merged) Pop() any {
	last := m.files[len(m.files)-1]
	m.files = m.files[:len(m.files)-1]
	return last
}

func (m *merged) close() {
	for _, file := range m.files {
		file.close()
	}
}

// yieldDay yields the events of a day's files.
func (m *merged) yieldDay(names []string) error {
	day, _, _ := strings.Cut(names[0], ".")
	names, left := fewest(m.dir, names)
	if left != nil && !m.yield(source.Event{}, left) {
		return errEnough
	}
	for _, name := range names {
		if err := m.add(&begun{followed: newFollowed(m.dir, name)}); err != nil {
			return err
		}
	}
	for m.Len() > 0 {
		next := m.files[0]
		if !m.yield(next.events[0], nil) {
			return errEnough
		}
		next.events = next.events[1:]
		if len(next.events) > 0 {
			heap.Fix(m, 0)
			continue
		}
		heap.Pop(m)
		if err := m.add(next); err != nil {
			return err
		}
	}
	if why := m.budget.Skipped(); why != nil {
		return m.leave(filepath.Join(m.dir.Path(), day), why)
	}
	return nil
}

// add reads the next piece of a file, and adds the file to the heap if it has events.
func (m *merged) add(file *begun) error {
	err := m.fill(file)
	if len(file.events) > 0 {
		heap.Push(m, file)
	}
	if !leftOut(err) {
		return groupfiles.IgnoreGone(err)
	}
	return m.leave(file.path, err)
}

func (m *merged) leave(part string, why error) error {
	if !m.yield(source.Event{}, &source.LeftOutError{Part: part, Why: why}) {
		return errEnough
	}
	return nil
}

// fill reads until there is an event.
func (m *merged) fill(f *begun) error {
	for !f.over {
		if m.budget.Over() {
			m.budget.Skip(f.size - f.read)
			f.end()
			return nil
		}
		events, err := m.piece(f)
		if f.events = events; len(events) > 0 || err != nil {
			return err
		}
	}
	return nil
}

// piece reads the next piece of a file.
func (m *merged) piece(f *begun) ([]source.Event, error) {
	if f.File == nil {
		if err := f.open(m.once, m.dir); err != nil {
			f.end()
			return nil, err
		}
	}
	before, next := f.read, f.next
	if m.backward {
		next = f.previous
	}
	events, more, err := next(m.since)
	m.budget.Spend(f.read - before)
	switch {
	case !more && err == nil:
		events = append(events, eventsIn(f.rest, m.since)...) // perhaps only the newline is missing
		f.end()
	case !more:
		f.end()
	case m.brief:
		f.suspend()
	}
	slices.SortStableFunc(events, func(a, b source.Event) int { return a.Time.Compare(b.Time) })
	if m.backward {
		slices.Reverse(events)
	}
	return events, err
}
