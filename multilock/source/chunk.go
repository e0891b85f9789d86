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

// Chunk is what the result of a chunk has beside that of a job: a chunk is a run of
// neighbouring jobs of a list, which were claimed with one lock and are recorded together.
type Chunk struct {
	// From and To are the numbers of its first and last job in the list, from 1.
	From int `json:"from"`
	To   int `json:"to"`
	// Done and Failed count the jobs that nobody is to try again.
	Done   int `json:"done"`
	Failed int `json:"failed"`
	// Incomplete are those of Done whose output is not kept as a whole (Result.Output).
	Incomplete int `json:"incomplete,omitempty"`
	// Returned are jobs that were given back before they were begun. Each range is a chunk
	// of its own since, with a lock and a result of its own.
	Returned []Range `json:"returned,omitempty"`
	// Fence is the largest fencing number that its jobs were given, 0 if there was none.
	Fence uint64 `json:"fence,omitempty"`
	// Label, if not empty, is shown in place of the jobs' commands, which only the list has.
	Label string `json:"label,omitempty"`
	// Recorded is how many of its jobs have a result.
	Recorded int `json:"recorded"`
	// Attempts is how many attempts at them are recorded, and Ran how long those took together,
	// in seconds; both are 0 in what earlier versions wrote.
	Attempts int     `json:"attempts,omitempty"`
	Ran      float64 `json:"ran_seconds,omitempty"`
	// Jobs are those, in the list's order. Of a result that was read for its Chunk alone
	// they are not known.
	Jobs []ChunkJob `json:"-"`
}

// Range are neighbouring jobs of a list, by their numbers from 1.
type Range struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// String is for people: "jobs 1 to 64".
func (r Range) String() string {
	if r.From == r.To {
		return fmt.Sprintf("job %d", r.From)
	}
	return fmt.Sprintf("jobs %d to %d", r.From, r.To)
}

// ChunkJob is how one job of a chunk ended. It is kept short: there may be very many.
type ChunkJob struct {
	// Number is the job's number in the list, from 1.
	Number int    `json:"i"`
	Name   string `json:"n"`
	Exit   int    `json:"x,omitempty"`
	Signal string `json:"g,omitempty"`
	Why    string `json:"w,omitempty"`
	Output string `json:"o,omitempty"`
	// Host ran it, if that was under an earlier lock than the one of the chunk's result.
	Host string `json:"h,omitempty"`
	// Attempt counts from 1; Retry says that there is to be one more.
	Attempt int  `json:"a"`
	Retry   bool `json:"r,omitempty"`
	// Start is in milliseconds since 1970, by the clock of its host, and Micros the
	// microseconds beyond those, which earlier versions did not write; Duration is in
	// microseconds.
	Start    int64 `json:"s"`
	Micros   int64 `json:"u,omitempty"`
	Duration int64 `json:"d"`
	// Command is not recorded: a reader that shows it takes it from the list.
	Command string `json:"-"`
	// Before are the attempts before this one, the last of them if there were more than
	// maxBefore.
	Before []ChunkAttempt `json:"b,omitempty"`
}

// ChunkAttempt is how an attempt ended after which there was another one. The fields are as in
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

// maxBefore bounds ChunkJob.Before.
const maxBefore = 8

// ChunkJobOf is the short form of the result of a job.
func ChunkJobOf(number int, r Result) ChunkJob {
	return ChunkJob{
		Number: number, Name: r.Name, Exit: r.Exit, Signal: r.Signal, Why: r.Why, Output: r.Output,
		Attempt: r.Attempt, Retry: !r.Final, Start: r.Start.UnixMilli(), Micros: r.Start.UnixMicro() % 1000, Duration: r.Duration.Microseconds(),
	}
}

// After is the job with the attempts that were recorded before.
func (j ChunkJob) After(last ChunkJob) ChunkJob {
	if j.Attempt <= last.Attempt {
		return j // it began anew
	}
	j.Before = append(slices.Clone(last.Before), ChunkAttempt{
		Exit: last.Exit, Signal: last.Signal, Why: last.Why, Host: last.Host, Start: last.Start, Micros: last.Micros, Duration: last.Duration,
	})
	j.Before = j.Before[max(len(j.Before)-maxBefore, 0):]
	return j
}

// On is the job with the host that ran it, and its attempts before, where that was not said: for
// the record of another holder.
func (j ChunkJob) On(host string) ChunkJob {
	j.Host, j.Before = cmp.Or(j.Host, host), slices.Clone(j.Before)
	for i := range j.Before {
		j.Before[i].Host = cmp.Or(j.Before[i].Host, host)
	}
	return j
}

// Attempts are the results of all attempts that are known, given that of the chunk; the job's is
// the last.
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

// Result is the job's result, given that of its chunk. Of one that ran under an earlier lock
// it is only known on which host that was.
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

// Final says whether nothing of the chunk itself is left to be done.
func (c *Chunk) Final() bool { return c.Done+c.Failed+c.GivenBack() == c.To-c.From+1 }

// GivenBack is how many of its jobs are chunks of their own since.
func (c *Chunk) GivenBack() (n int) {
	for _, r := range c.Returned {
		n += r.To - r.From + 1
	}
	return n
}

// Count sets what the Jobs say: Done, Failed, Incomplete, Recorded, Attempts and Ran.
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

// summary is the chunk without the Jobs.
func (c *Chunk) summary() *Chunk {
	if c == nil {
		return nil
	}
	short := *c
	short.Jobs = nil
	return &short
}

// maxJobText bounds each text of a ChunkJob.
const maxJobText = 256

// bounded is the chunk with texts of limited length.
func (c *Chunk) bounded() *Chunk {
	return c.with(func(text string) string { return Shorten(text, maxJobText) })
}

// printable is the chunk as it can be shown.
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

// check finds what no chunk can be.
func (c *Chunk) check() error {
	if c == nil {
		return nil
	}
	if c.From < 1 || c.To < c.From || c.Done < 0 || c.Failed < 0 || c.Incomplete < 0 || c.Recorded < 0 || c.Attempts < 0 || c.Ran < 0 {
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
			return errors.New("it gave back what it did not have")
		}
		last = r.To
	}
	return nil
}

// Chunks is what a Ledger may offer to make long lists cheaper.
type Chunks interface {
	Ledger
	// Summary is Result without the Jobs of a chunk, at a fraction of its cost.
	Summary(ctx context.Context, name string) (Result, error)
	// Current is Result without any cache, at the cost of Outcome: a result that was removed
	// before the call is not returned.
	Current(ctx context.Context, name string) (Result, error)
	// OpenProgressMap opens the progress map of the group's list. The map goes with the list that
	// the group has now: after Retract no host reads what is written to it.
	OpenProgressMap(ctx context.Context) (ProgressMap, error)
	// DropProgressMap removes the map. A host that opens it again finds an empty one.
	DropProgressMap(ctx context.Context) error
}

// ProgressMap lets hosts that work through one list save each other work: some bytes, each written
// by itself. Correctness does not depend on it: bytes may be seen late, or be lost. It is safe for
// concurrent use.
type ProgressMap interface {
	// Read returns up to size bytes. Bytes that were not written are 0, or missing.
	Read(ctx context.Context, size int) ([]byte, error)
	// Write writes one byte.
	Write(ctx context.Context, at int, value byte) error
	// Confirm is Write if sure returns true, to the map that existed before sure was called: if
	// that was dropped since, no host reads the byte, however late it is written.
	Confirm(ctx context.Context, at int, value byte, sure func(context.Context) bool) error
	// Close waits for calls that hang. Later calls do nothing.
	Close() error
}
