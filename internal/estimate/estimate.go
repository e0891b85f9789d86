// Package estimate estimates how much of a list's work is done and how much is left. Jobs that run
// the same program count as one kind, and jobs of one kind are expected to take equally long.
package estimate

import (
	"path"
	"strings"
	"time"
)

// Work is the work of a list. Its zero value has no jobs. Calls must not run concurrently.
type Work struct {
	kinds     []kind
	byProgram map[string]uint8
	of        []uint8 // the kind of each job
}

type kind struct {
	jobs, ended int
	before      int // ended before Begin
	timed       int // jobs of known duration
	took        time.Duration
}

const (
	// maxKinds bounds the kinds; the last one collects the rest.
	maxKinds = 64
	// skipped is the kind of a job that was removed.
	skipped = maxKinds
)

// Add adds a job at the end of the list.
func (w *Work) Add(command string) {
	name := program(command)
	k, known := w.byProgram[name]
	if !known {
		if w.byProgram == nil {
			w.byProgram = map[string]uint8{}
		}
		if k = uint8(min(len(w.kinds), maxKinds-1)); int(k) == len(w.kinds) { //nolint:gosec // less than maxKinds
			w.kinds = append(w.kinds, kind{})
			w.byProgram[strings.Clone(name)] = k
		}
	}
	w.of = append(w.of, k)
	w.kinds[k].jobs++
}

// Skip adds the place of a job that was removed from the list.
func (w *Work) Skip() { w.of = append(w.of, skipped) }

// program returns the start of a command that determines its kind: the program and, after an
// interpreter, the script.
func program(command string) string {
	start, end := word(command, 0)
	switch strings.TrimRight(path.Base(command[start:end]), "0123456789.") { // without a version
	case "sh", "bash", "python", "perl", "Rscript", "julia", "ruby", "node", "java":
		_, end = word(command, end)
	}
	return command[start:end]
}

// word returns where the first word behind an offset starts and ends.
func word(text string, from int) (start, end int) {
	start = len(text) - len(strings.TrimLeft(text[from:], " \t"))
	if n := strings.IndexAny(text[start:], " \t"); n >= 0 {
		return start, start + n
	}
	return start, len(text)
}

// Ended records that a job, by its index, has its final result. took is 0 if its duration is unknown.
func (w *Work) Ended(job int, took time.Duration) {
	if w.of[job] == skipped {
		return
	}
	k := &w.kinds[w.of[job]]
	k.ended++
	if took > 0 {
		k.timed++
		k.took += took
	}
}

// Begin makes Done count only the jobs that end from now on.
func (w *Work) Begin() {
	for i := range w.kinds {
		w.kinds[i].before = w.kinds[i].ended
	}
}

// Estimate is the total duration of jobs: of those that have ended since Begin, and of those that are
// left.
type Estimate struct{ Done, Left time.Duration }

// Estimate weighs each job with the mean duration of its kind, or of all jobs if none of its kind
// has ended. If no duration is known, all jobs weigh the same.
func (w *Work) Estimate() (e Estimate) {
	var all kind
	for _, k := range w.kinds {
		all.timed += k.timed
		all.took += k.took
	}
	usual := all.mean(time.Second)
	for _, k := range w.kinds {
		mean := k.mean(usual)
		e.Done += time.Duration(k.ended-k.before) * mean
		e.Left += time.Duration(max(k.jobs-k.ended, 0)) * mean
	}
	return e
}

func (k kind) mean(otherwise time.Duration) time.Duration {
	if k.timed == 0 {
		return otherwise
	}
	return k.took / time.Duration(k.timed)
}

// Remaining returns how long the rest takes at the pace at which the work was done so far, 0 if
// nothing was.
func (e Estimate) Remaining(elapsed time.Duration) time.Duration {
	if e.Done <= 0 {
		return 0
	}
	return time.Duration(float64(elapsed) * (float64(e.Left) / float64(e.Done)))
}
