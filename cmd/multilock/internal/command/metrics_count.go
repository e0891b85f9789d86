package command

import (
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock/source"
)

// Each name makes a dozen time series, so their number is bounded.
const (
	maxNames   = 1000
	chunkNames = "#jobs"   // for the lists of all batches
	otherNames = "#others" // names beyond maxNames
)

// counts aggregates a history event by event, because a long history does not fit into memory.
type counts struct {
	group   string
	jobs    map[string]*count
	crowded bool // there were more than maxNames names
	// counted has the acquisitions whose end must not count as a run: a result was recorded, or the
	// lock was broken or lost.
	counted    map[[2]string]counted
	chunks     map[string]source.Chunk // what was counted for each chunk, over all holders
	remembered int                     // estimated bytes of both maps
	overfull   bool                    // maxRemembered was exceeded
}

// maxRemembered is enough for a million chunks.
const maxRemembered = 128 << 20

// remember reports whether an entry with these texts fits, and reserves its memory.
func (c *counts) remember(texts ...string) bool {
	if c.remembered > maxRemembered {
		c.overfull = true
		return false
	}
	c.remembered += entrySize(texts)
	return true
}

func entrySize(texts []string) int {
	size := 100 // overhead
	for _, text := range texts {
		size += len(text)
	}
	return size
}

// counted is the reason why an acquisition has already been counted.
type counted uint8

const (
	byResult counted = iota + 1
	byBreak
	byLoss
)

// count has the counters of one name.
type count struct {
	runs, failures, losses, breaks, refusals, missed, waits int
	ran, waited                                             time.Duration
	timed                                                   int           // runs with a known duration
	last                                                    time.Duration // duration of the last timed run
	any                                                     bool          // whether last is set
}

func newCounts(group string) *counts {
	return &counts{group: group, jobs: map[string]*count{}, counted: map[[2]string]counted{}, chunks: map[string]source.Chunk{}}
}

// label is the name that a lock's jobs are counted under. Names that differ only in invalid UTF-8
// share a label and are counted together, because a series must be unique.
func (c *counts) label(lock string) string {
	name := strings.ToValidUTF8(jobLabel(lock), "\ufffd")
	if c.jobs[name] == nil && len(c.jobs) >= maxNames {
		c.crowded = true
		return otherNames
	}
	return name
}

func (c *counts) of(lock string) *count {
	name := c.label(lock)
	if c.jobs[name] == nil {
		c.jobs[name] = &count{}
	}
	return c.jobs[name]
}

// add counts an event. Several events can belong to one run, so a run counts with its results if
// there are any, and otherwise with the release, loss or break of its lock.
func (c *counts) add(e source.Event) {
	n, key := c.of(e.Name), [2]string{e.Name, e.Token}
	switch e.What {
	case source.EventAcquired:
		n.waits++
		n.waited += e.Waited
	case source.EventCommitted:
		c.mark(key, byResult)
		c.commit(n, e)
	case source.EventReleased:
		if c.counted[key] == 0 && e.Attempt == 0 {
			n.run(e.Exit == nil || *e.Exit == 0 && e.Signal == "", e.Held)
		}
		c.forget(key)
	case source.EventLost:
		n.losses++
		switch c.counted[key] {
		case 0:
			n.run(false, e.Held)
			c.mark(key, byLoss) // an event about the break may follow
		case byBreak:
			n.took(e.Held)
			c.forget(key)
		case byResult:
			c.forget(key)
		case byLoss:
		}
	case source.EventBroke:
		n.breaks++
		if c.counted[key] == 0 { // the holder died, or has not noticed yet
			n.runs++
			n.failures++
			c.mark(key, byBreak)
			return
		}
		c.forget(key)
	case source.EventRefused:
		n.refusals++
	case source.EventForgot:
	}
}

// mark notes why an acquisition was counted. Acquisitions without a token cannot be distinguished.
func (c *counts) mark(key [2]string, by counted) {
	if key[1] != "" && (c.counted[key] != 0 || c.remember(key[:]...)) {
		c.counted[key] = by
	}
}

// forget removes an acquisition that has ended.
func (c *counts) forget(key [2]string) {
	if c.counted[key] != 0 {
		c.remembered -= entrySize(key[:])
		delete(c.counted, key)
	}
}

// commit counts a recorded attempt. The results of a chunk are cumulative, so only the difference
// to the last one counts.
func (c *counts) commit(n *count, e source.Event) {
	if e.Chunk == nil {
		n.run(e.Exit != nil && *e.Exit == 0 && e.Signal == "", e.Held)
		n.missed += missedOf(e)
		return
	}
	before, known := c.chunks[e.Name]
	if !known && !c.remember(e.Name) {
		return // otherwise each of its results would count in full
	}
	now := *e.Chunk
	if now.Attempts == 0 { // written by an earlier version
		now.Attempts = now.Done + now.Failed
	} else {
		n.timed += max(now.Attempts-before.Attempts, 0)
		n.ran += time.Duration(max(now.Ran-before.Ran, 0) * float64(time.Second))
	}
	n.runs += max(now.Attempts-before.Attempts, 0)
	n.failures += max(now.Attempts-now.Done-(before.Attempts-before.Done), 0)
	c.chunks[e.Name] = source.Chunk{Done: now.Done, Attempts: now.Attempts, Ran: now.Ran}
}

// missedOf returns the missed ticks of a first attempt. Further attempts repeat the number.
func missedOf(e source.Event) int {
	if e.Attempt > 1 {
		return 0
	}
	return e.Missed
}

func (n *count) run(well bool, took time.Duration) {
	n.runs++
	if !well {
		n.failures++
	}
	n.took(took)
}

func (n *count) took(time time.Duration) {
	n.ran += time
	n.timed++
	n.last, n.any = time, true
}

func (c *counts) labels(name string) map[string]string {
	return map[string]string{"group": c.group, "name": name}
}

// families returns the counted metrics. Counters of 0 are included, so that their first increase is visible.
func (c *counts) families() []show.Family {
	families := make([]show.Family, 0, 10)
	counter := func(name, help string, value func(*count) int) {
		f := show.Family{Name: name, Help: help, Type: "counter"}
		for job, n := range c.jobs {
			f.Samples = append(f.Samples, show.Sample{Labels: c.labels(job), Value: float64(value(n))})
		}
		families = append(families, f)
	}
	counter("multilock_runs_total", "Runs that have finished: attempts at jobs, commands, and scripts under a lock.", func(n *count) int { return n.runs })
	counter("multilock_runs_failed_total", "Of these, those that failed, or whose lock was lost or broken.", func(n *count) int { return n.failures })
	counter("multilock_locks_lost_total", "Locks that were lost while they were held.", func(n *count) int { return n.losses })
	counter("multilock_locks_broken_total", "Locks that another process broke, mostly because their holder had died.", func(n *count) int { return n.breaks })
	counter("multilock_not_acquired_total", "Acquisitions that failed because another process held the lock, as far as the history has them (run --fail-after).", func(n *count) int { return n.refusals })
	counter("multilock_missed_ticks_total", "Ticks of --every that went without a run.", func(n *count) int { return n.missed })
	return append(families,
		c.summary("multilock_run_duration_seconds", "How long runs took.", func(n *count) (time.Duration, int) { return n.ran, n.timed }),
		c.summary("multilock_waited_seconds", "How long locks were waited for.", func(n *count) (time.Duration, int) { return n.waited, n.waits }),
		c.lastDuration())
}

// summary is a sum and a count, without quantiles.
func (c *counts) summary(name, help string, value func(*count) (time.Duration, int)) show.Family {
	f := show.Family{Name: name, Help: help, Type: "summary"}
	for job, n := range c.jobs {
		sum, count := value(n)
		f.Samples = append(f.Samples,
			show.Sample{Suffix: "_sum", Labels: c.labels(job), Value: sum.Seconds()},
			show.Sample{Suffix: "_count", Labels: c.labels(job), Value: float64(count)})
	}
	return f
}

func (c *counts) lastDuration() show.Family {
	f := show.Family{Name: "multilock_last_run_duration_seconds", Help: "How long the last run took.", Type: "gauge"}
	for job, n := range c.jobs {
		if n.any {
			f.Samples = append(f.Samples, show.Sample{Labels: c.labels(job), Value: n.last.Seconds()})
		}
	}
	return f
}
