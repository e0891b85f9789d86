package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Chunk is what the result of a chunk has in addition to that of a job. A chunk is a range of
// consecutive jobs of a list that are claimed with one lock and recorded together.
type Chunk struct {
	// From and To are the numbers of the first and the last job in the list, from 1.
	From int `json:"from"`
	To   int `json:"to"`
	// Done and Failed count the jobs without a further attempt.
	Done   int `json:"done"`
	Failed int `json:"failed"`
	// Incomplete counts those of Done whose output was not captured as a whole (Result.Output).
	Incomplete int `json:"incomplete,omitempty"`
	// Returned are jobs that were released before they started. Each range is now a chunk of its
	// own, with its own lock and result.
	Returned []Range `json:"returned,omitempty"`
	// Fence is the largest fencing token of its jobs, 0 if there was none.
	Fence uint64 `json:"fence,omitempty"`
	// Removed counts the jobs that are no longer in the list, without those of Returned.
	Removed int `json:"removed,omitempty"`
	// Revision is how many sections of the list a host must have read before it runs a job of the
	// chunk: a change of the list is announced here before it is made.
	Revision int `json:"revision,omitempty"`
	// Label, if not empty, is shown instead of the jobs' commands, which only the list has.
	Label string `json:"label,omitempty"`
	// Recorded is how many of its jobs have a result.
	Recorded int `json:"recorded"`
	// Attempts counts the recorded attempts, and Ran is their total duration in seconds; earlier
	// versions wrote neither.
	Attempts int     `json:"attempts,omitempty"`
	Ran      float64 `json:"ran_seconds,omitempty"`
	// Jobs are the recorded jobs in the order of the list, nil in a summary.
	Jobs []ChunkJob `json:"-"`
}

// Range is a range of consecutive jobs of a list, by their numbers from 1.
type Range struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// String returns a text for users, such as "jobs 1 to 64".
func (r Range) String() string {
	if r.From == r.To {
		return fmt.Sprintf("job %d", r.From)
	}
	return fmt.Sprintf("jobs %d to %d", r.From, r.To)
}

// ChunkJob is how one job of a chunk ended. JSON names are short because there may be very many.
type ChunkJob struct {
	// Number is the job's number in the list, from 1.
	Number int    `json:"i"`
	Name   string `json:"n"`
	Exit   int    `json:"x,omitempty"`
	Signal string `json:"g,omitempty"`
	Why    string `json:"w,omitempty"`
	Output string `json:"o,omitempty"`
	// Host is the host that ran the job, if that was under an earlier lock than the one of the
	// chunk's result.
	Host string `json:"h,omitempty"`
	// Attempt counts from 1; Retry means that another attempt follows.
	Attempt int  `json:"a"`
	Retry   bool `json:"r,omitempty"`
	// Start is in milliseconds since 1970 by the clock of the job's host, and Micros the
	// microseconds beyond those, which earlier versions did not write; Duration is in microseconds.
	Start    int64 `json:"s"`
	Micros   int64 `json:"u,omitempty"`
	Duration int64 `json:"d"`
	// Command is not recorded: a reader that shows it takes it from the list.
	Command string `json:"-"`
	// Before are the earlier attempts, the last maxBefore of them.
	Before []ChunkAttempt `json:"b,omitempty"`
}

// ChunkAttempt is how an attempt ended that was followed by another one. The fields are those of
// ChunkJob.
type ChunkAttempt struct {
	Exit     int    `json:"x,omitempty"`
	Signal   string `json:"g,omitempty"`
	Why      string `json:"w,omitempty"`
	Host     string `json:"h,omitempty"`
	Start    int64  `json:"s"`
	Micros   int64  `json:"u,omitempty"`
	Duration int64  `json:"d"`
}

// maxBefore limits ChunkJob.Before.
const maxBefore = 8

// ChunkJobOf returns the short form of a job's result.
func ChunkJobOf(number int, r Result) ChunkJob {
	return ChunkJob{
		Number: number, Name: r.Name, Exit: r.Exit, Signal: r.Signal, Why: r.Why, Output: r.Output,
		Attempt: r.Attempt, Retry: !r.Final, Start: r.Start.UnixMilli(), Micros: r.Start.UnixMicro() % 1000, Duration: r.Duration.Microseconds(),
	}
}

// After returns the job with the attempts that were recorded before.
func (j ChunkJob) After(last ChunkJob) ChunkJob {
	if j.Attempt <= last.Attempt {
		return j // the job was started over
	}
	j.Before = append(slices.Clone(last.Before), ChunkAttempt{
		Exit: last.Exit, Signal: last.Signal, Why: last.Why, Host: last.Host, Start: last.Start, Micros: last.Micros, Duration: last.Duration,
	})
	j.Before = j.Before[max(len(j.Before)-maxBefore, 0):]
	return j
}

// On returns the job with its host, and that of its earlier attempts, set where it was unset: for
// the record of another holder.
func (j ChunkJob) On(host string) ChunkJob {
	j.Host, j.Before = cmp.Or(j.Host, host), slices.Clone(j.Before)
	for i := range j.Before {
		j.Before[i].Host = cmp.Or(j.Before[i].Host, host)
	}
	return j
}

// Attempts returns the results of all known attempts, given that of the chunk. The last one is the
// job's.
func (j ChunkJob) Attempts(of Result) []Result {
	all := make([]Result, 0, len(j.Before)+1)
	for i, a := range j.Before {
		all = append(all, ChunkJob{
			Name: j.Name, Exit: a.Exit, Signal: a.Signal, Why: a.Why, Host: a.Host, Attempt: j.Attempt - len(j.Before) + i, Retry: true,
			Start: a.Start, Micros: a.Micros, Duration: a.Duration,
		}.Result(of))
	}
	return append(all, j.Result(of))
}

// Result returns the job's result, given that of its chunk. Of a job that ran under an earlier lock
// only the host is known.
func (j ChunkJob) Result(of Result) Result {
	r := Result{
		Name: j.Name, Token: of.Token, By: of.By, User: of.User, Exit: j.Exit, Signal: j.Signal, Why: j.Why, Output: j.Output,
		Attempt: j.Attempt, Final: !j.Retry, Start: time.UnixMilli(j.Start).Add(time.Duration(j.Micros) * time.Microsecond), Duration: time.Duration(j.Duration) * time.Microsecond,
	}
	if of.Chunk != nil {
		r.Command = cmp.Or(of.Chunk.Label, j.Command)
	}
	if j.Host != "" {
		r.By, r.User, r.Token = process.Identity{Host: j.Host}, "", ""
	}
	return r
}

// Final reports whether no job of the chunk itself is left to run.
func (c *Chunk) Final() bool { return c.Done+c.Failed+c.Removed+c.GivenBack() == c.To-c.From+1 }

// GivenBack counts the jobs of Returned.
func (c *Chunk) GivenBack() (n int) {
	for _, r := range c.Returned {
		n += r.To - r.From + 1
	}
	return n
}

// Count computes Done, Failed, Incomplete, Recorded, Attempts and Ran from Jobs.
func (c *Chunk) Count() {
	c.Done, c.Failed, c.Incomplete, c.Recorded, c.Attempts = 0, 0, 0, len(c.Jobs), 0
	var ran int64
	for _, j := range c.Jobs {
		c.Attempts += j.Attempt
		ran += j.Duration
		for _, a := range j.Before {
			ran += a.Duration
		}
		switch {
		case j.Retry:
		case j.Exit == 0 && j.Signal == "":
			c.Done++
			if j.Output != "" {
				c.Incomplete++
			}
		default:
			c.Failed++
		}
	}
	c.Ran = (time.Duration(ran) * time.Microsecond).Seconds()
}

// summary returns the chunk without Jobs.
func (c *Chunk) summary() *Chunk {
	if c == nil {
		return nil
	}
	short := *c
	short.Jobs = nil
	return &short
}

// maxJobText limits each text of a ChunkJob.
const maxJobText = 256

// bounded returns the chunk with texts of limited length.
func (c *Chunk) bounded() *Chunk {
	return c.with(func(text string) string { return Shorten(text, maxJobText) })
}

// printable returns the chunk without unprintable characters.
func (c *Chunk) printable() *Chunk { return c.with(Printable) }

func (c *Chunk) with(change func(string) string) *Chunk {
	if c == nil {
		return nil
	}
	changed := *c
	changed.Jobs = slices.Clone(c.Jobs)
	for i := range changed.Jobs {
		j := &changed.Jobs[i]
		for _, text := range []*string{&j.Signal, &j.Why, &j.Output, &j.Host} {
			*text = change(*text)
		}
		j.Before = slices.Clone(j.Before)
		for k := range j.Before {
			for _, text := range []*string{&j.Before[k].Signal, &j.Before[k].Why, &j.Before[k].Host} {
				*text = change(*text)
			}
		}
	}
	return &changed
}

// check rejects an impossible chunk.
func (c *Chunk) check() error {
	if c == nil {
		return nil
	}
	if c.From < 1 || c.To < c.From || c.Done < 0 || c.Failed < 0 || c.Incomplete < 0 || c.Recorded < 0 || c.Attempts < 0 || c.Ran < 0 || c.Removed < 0 || c.Revision < 0 {
		return errors.New("its jobs have impossible numbers")
	}
	inside := func(from, to int) bool { return c.From <= from && from <= to && to <= c.To }
	last := 0
	for _, j := range c.Jobs {
		if !inside(j.Number, j.Number) || j.Number <= last || j.Attempt <= len(j.Before) || j.Name == "" {
			return errors.New("one of its jobs has an impossible record")
		}
		last = j.Number
	}
	last = 0
	for _, r := range c.Returned {
		if !inside(r.From, r.To) || r.From <= last || r == (Range{From: c.From, To: c.To}) {
			return errors.New("it returned jobs that it did not have")
		}
		last = r.To
	}
	return nil
}

// Chunks is an optional extension of Ledger that makes long lists cheaper.
type Chunks interface {
	Ledger
	// Summary is Result without the Jobs of a chunk, at a fraction of its cost.
	Summary(ctx context.Context, name string) (Result, error)
	// Current is Result without any cache, at the cost of Outcome: a result that was removed
	// before the call is not returned.
	Current(ctx context.Context, name string) (Result, error)
	// OpenProgressMap opens the progress map of the group's current list. After Retract no host
	// reads what is written to it.
	OpenProgressMap(ctx context.Context) (ProgressMap, error)
	// DropProgressMap removes the map. A host that opens it again finds an empty one.
	DropProgressMap(ctx context.Context) error
}

// ProgressMap lets hosts that process one list skip jobs that another host has recorded. It
// consists of bytes that are written one at a time. Correctness does not depend on it: a byte may
// be read late, or be lost. It is safe for concurrent use.
type ProgressMap interface {
	// Read returns up to size bytes. Bytes that were not written are 0, or missing.
	Read(ctx context.Context, size int) ([]byte, error)
	// Write writes one byte.
	Write(ctx context.Context, at int, value byte) error
	// Confirm is Write if sure returns true, to the map that existed before sure was called: if
	// that map was dropped since, no host reads the byte, however late it is written.
	Confirm(ctx context.Context, at int, value byte, sure func(context.Context) bool) error
	// Close waits for pending calls. Later calls do nothing.
	Close() error
}
