package printed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// Limits limit the stored output of runs under one lock.
type Limits struct {
	Runs int
	Size int64 // of all files; one run gets half
}

// partOf is the size of one file. A run has several, so that it can drop a part of its output.
func (l Limits) partOf() int64 { return l.Size / 16 }

// RunLog stores the output of one run. Its methods are safe for concurrent use.
type RunLog struct {
	*Log
	head Head
}

// NewRunLog returns the log of a run whose lock is held. It removes the output of earlier runs, and
// never of another holder, because each lock has its own directory.
func NewRunLog(open func(lock string) (*fslock.Logs, error), host, lock, token string, run uint64, limits Limits) *RunLog {
	return &RunLog{
		Log: &Log{
			open: func() (*fslock.Logs, error) { return open(lock) },
			host: host,
			name: func(number int) string { return fslock.RunFileName(run, token, number) },
			most: limits.partOf(),
			made: func(dir *fslock.Logs) { limits.shorten(dir, token) },
		},
		head: Head{Seq: int(run), Name: lock}, //nolint:gosec // fslock refuses larger numbers
	}
}

// BeginAttempt writes an empty frame, so that a run without output is also found.
func (l *RunLog) BeginAttempt(h Head) error {
	h.Seq, h.Name, h.Stream = l.head.Seq, l.head.Name, Out
	l.head = h
	_, err := l.add(h, nil)
	return err
}

// Attempt starts a stream of the current attempt.
func (l *RunLog) Attempt(stream Stream) *Job {
	h := l.head
	h.Stream = stream
	return l.Begin(h)
}

// End records the run's outcome, and closes the log.
func (l *RunLog) End(how string) error {
	h := l.head
	h.Stream = end
	upTo, err := l.add(h, []byte(source.Shorten(how, maxHead)))
	if err == nil {
		err = l.sync(upTo-1, upTo)
	}
	return errors.Join(err, l.Close())
}

// shorten removes whole runs, the oldest first, and then the middle of this run's output. It leaves
// files that it cannot remove, such as another user's.
func (l Limits) shorten(dir *fslock.Logs, own string) {
	files, err := dir.Runs()
	if err != nil {
		return
	}
	budget, kept := l.Size/2, 1
	dropped := map[string]bool{}
	for _, run := range slices.Backward(runsOf(files)) {
		if run.Token == own {
			continue
		}
		budget -= run.Size
		kept++
		dropped[run.Token] = budget < 0 || kept > l.Runs
	}
	budget = l.Size/2 - l.partOf() - maxFrame - maxHead // the last file exceeds partOf by at most a frame
	var mine []fslock.RunFile
	for _, f := range files {
		switch {
		case f.Token == own:
			mine = append(mine, f)
			budget -= f.Size
		case dropped[f.Token]:
			_ = dir.Remove(f.Name)
		}
	}
	for i := 1; budget < 0 && i < len(mine)-1; i++ { // keep the first and the last part
		budget += mine[i].Size
		_ = dir.Remove(mine[i].Name)
	}
}

// Run is a run with stored output.
type Run struct {
	Number uint64
	Token  string
	Size   int64 // of its files
}

// RunsIn lists the runs in a directory, the oldest first.
func RunsIn(dir *fslock.Logs) ([]Run, error) {
	files, err := dir.Runs()
	return runsOf(files), err
}

func runsOf(files []fslock.RunFile) (runs []Run) {
	for _, f := range files {
		if n := len(runs); n == 0 || runs[n-1].Token != f.Token {
			runs = append(runs, Run{Number: f.Run, Token: f.Token})
		}
		runs[len(runs)-1].Size += f.Size
	}
	return runs
}

// Choose returns a run by its number. Zero selects the last run, -n the n-th before it.
func Choose(runs []Run, number int) (Run, error) {
	if number > 0 {
		for _, r := range slices.Backward(runs) {
			if r.Number == uint64(number) {
				return r, nil
			}
		}
	} else if at := len(runs) - 1 + number; at >= 0 && at < len(runs) {
		return runs[at], nil
	}
	if len(runs) == 0 {
		return Run{}, errors.New("no run's output is kept")
	}
	return Run{}, fmt.Errorf("the output of that run is not stored; %d runs are, from run %d to run %d", len(runs), runs[0].Number, runs[len(runs)-1].Number)
}

// RunReader reads the output of one run, and follows it.
type RunReader struct {
	Reader

	Run     Run
	Host    string
	Began   Head   // of the last attempt
	Size    int64  // of the output so far
	Tries   int    // number of attempts
	End     string // the run's outcome, "" if it goes on or was cut off
	Dropped bool   // the middle of its output was dropped
}

// NewRunReader reads a run in a directory.
func NewRunReader(dir *fslock.Logs, run Run, leftOut func(error)) *RunReader {
	r := &RunReader{Run: run}
	r.Reader = Reader{Dir: dir, LeftOut: leftOut, runs: true, only: func(name string) bool {
		f, ok := fslock.ParseRunFile(name)
		return ok && f.Token == run.Token
	}}
	return r
}

// Each calls visit for each new frame with output. With cut, no process writes any more, and Each also
// reads a truncated frame.
func (r *RunReader) Each(cut bool, visit func(Frame) error) error {
	r.cut = cut
	part := 0
	return r.Reader.Each(func(f Frame) error {
		r.Host = f.Host
		if file, _ := fslock.ParseRunFile(f.File); file.Part != part {
			r.Dropped = r.Dropped || file.Part > part+1 && part > 0
			part = file.Part
		}
		switch {
		case f.Stream == end:
			how, err := r.Content(f)
			r.End = cmp.Or(string(how), "?")
			return err
		case f.Size == 0:
			r.Began, r.Tries = f.Head, r.Tries+1
			return nil
		}
		r.Size += int64(f.Size)
		return visit(f)
	})
}
