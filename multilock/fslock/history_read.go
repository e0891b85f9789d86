package fslock

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
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// What is read of a history, whoever has written there: a few pieces at a time, of one file
// no more than a host can write in a day, and of each day its share of what one command reads.
const (
	maxHistory      = 16 << 30  // some minutes' work
	historyChunk    = 32 << 10  // read at a time
	maxHistoryLine  = 256 << 10 // the texts of an event are bounded: none of ours is half as long
	maxHistoryFile  = 1 << 30   // twenty events in each second of a day
	maxHistoryFiles = 4096      // of a day
	maxHistoryOpen  = 64        // at the same time: a process may have 256 descriptors, and no more
)

// Why a file of the history is left out that could be read.
var (
	errEndless = errors.New("there is no line of a history in it, or none any more; remove it, or move it away")
	errTooLong = fmt.Errorf("only its first %d MiB are read; move it away", maxHistoryFile>>20)
)

// leftOut says whether an error is about one file, and the others can be read all the same.
func leftOut(err error) bool {
	return errors.Is(err, errEndless) || errors.Is(err, errTooLong) || errors.As(err, new(*sameFileError)) ||
		is(err, syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.ENXIO, syscall.EISDIR)
}

// followed is one file of a history.
type followed struct {
	vfs.File   // nil if it is not open
	name, path string
	size       int64 // when it was opened
	read       int64
	over       bool   // it is not read any more
	rest       []byte // the beginning of a line whose end was not there yet
}

func newFollowed(dir vfs.Dir, name string) *followed {
	return &followed{name: name, path: filepath.Join(dir.Path(), name)}
}

func (f *followed) open(once readOnce, dir vfs.Dir) error {
	file, info, err := once.open(dir, f.name)
	if err == nil {
		f.File, f.size = file, info.Size
	}
	return err
}

// suspend closes it; open goes on where it was.
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

// next reads one piece, and says whether there may be more. There is no more after an
// error, which may come with events.
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

// eventsIn are the events that can be read in lines of a history.
func eventsIn(lines []byte, since time.Time) (events []source.Event) {
	for line := range bytes.Lines(lines) {
		var e source.Event
		if json.Unmarshal(line, &e) == nil && !e.Time.Before(since) {
			e.Name = source.DecodeName(e.Name)
			events = append(events, e.Bounded()) // as ours are, whoever wrote it
		}
	}
	return events
}

// History implements source.Journal. A line that cannot be read (a host's crash can tear
// one) is left out. One day is read after the other, and the files of a day together.
func (s *Source) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		if err := s.tell(ctx, since, yield); err != nil && !errors.Is(err, errEnough) {
			yield(source.Event{}, opError("read the history", "", err))
		}
	}
}

// errEnough says that nobody wants to hear more.
var errEnough = errors.New("no more is to be told")

func (s *Source) tell(ctx context.Context, since time.Time, yield func(source.Event, error) bool) error {
	dir, err := s.findGroupPrivate(historyDir)
	if err != nil {
		return ignoreGone(err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	if err := s.refresh(dir); err != nil {
		return ignoreGone(err)
	}
	names, err := historyFiles(dir, since)
	if err != nil {
		return ignoreGone(err)
	}
	once, all, most := readOnce{}, slices.Collect(days(names)), budget.Of(ctx, s.readMost)
	for n, day := range all {
		share := most.Share(len(all) - n) // so a day with too much hides no other one
		files := &merged{dir: dir, since: since, yield: yield, once: once, brief: len(day) > maxHistoryOpen, budget: share}
		err := files.tell(day)
		files.close()
		if err != nil {
			return err
		}
		most.Charge(share)
	}
	return nil
}

// historyFiles are the files of a history that may tell of what was since a moment, in
// the order of their days.
func historyFiles(dir vfs.Dir, since time.Time) ([]string, error) {
	return shareddir.Names(dir.List, func(name string) bool {
		return strings.HasSuffix(name, historySuffix) && !endsBefore(name, since)
	})
}

// days are the names of files, in the order of their days, those of each together.
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

// fewest cuts a list of files to as many as are read, the last of them, and says so.
func fewest(dir vfs.Dir, names []string) ([]string, error) {
	over := len(names) - maxHistoryFiles
	if over <= 0 {
		return names, nil
	}
	return names[over:], &source.LeftOutError{Part: dir.Path(), Why: fmt.Errorf("%d files of more than %d for a day; move away those that nobody needs", over, maxHistoryFiles)}
}

// merged are files that are read together: a heap of those that have an event left, by the
// times of those. Of each a piece is in memory, in the order of time: processes of one host
// do not always write in that order.
type merged struct {
	dir    vfs.Dir
	since  time.Time
	yield  func(source.Event, error) bool
	once   readOnce
	brief  bool // a file is open only while a piece of it is read: there are many
	budget *budget.Budget
	files  []*begun
}

type begun struct {
	*followed
	events []source.Event
}

func (m *merged) Len() int { return len(m.files) }
func (m *merged) Less(i, j int) bool {
	return m.files[i].events[0].Time.Before(m.files[j].events[0].Time)
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

// tell tells all that is in the files of a day.
func (m *merged) tell(names []string) error {
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

// add reads on in a file, and puts it among the others if there is something in it.
func (m *merged) add(file *begun) error {
	err := m.fill(file)
	if len(file.events) > 0 {
		heap.Push(m, file)
	}
	if !leftOut(err) {
		return ignoreGone(err)
	}
	return m.leave(file.path, err)
}

func (m *merged) leave(part string, why error) error {
	if !m.yield(source.Event{}, &source.LeftOutError{Part: part, Why: why}) {
		return errEnough
	}
	return nil
}

// fill reads on until there is an event.
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
	before := f.read
	events, more, err := f.next(m.since)
	m.budget.Spend(f.read - before)
	switch {
	case !more && err == nil:
		events = append(events, eventsIn(f.rest, m.since)...) // only its end is missing, perhaps
		f.end()
	case !more:
		f.end()
	case m.brief:
		f.suspend()
	}
	slices.SortStableFunc(events, func(a, b source.Event) int { return a.Time.Compare(b.Time) })
	return events, err
}
