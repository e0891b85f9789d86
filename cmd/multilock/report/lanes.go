package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/survey"
)

// layOut assigns each run to its host's lane, and overlapping runs to different rows.
func (t *Timeline) layOut() {
	lanes := map[laneKey][]*Run{}
	for i := range t.Jobs {
		for k := range t.Jobs[i].Runs {
			r := &t.Jobs[i].Runs[k]
			key := laneKey{r.Host, r.Machine}
			lanes[key] = append(lanes[key], r)
		}
	}
	keys := slices.SortedFunc(maps.Keys(lanes), func(a, b laneKey) int {
		return cmp.Or(natural(a.host, b.host), cmp.Compare(a.machine, b.machine))
	})
	for _, key := range keys {
		t.Hosts = append(t.Hosts, lane(key, lanes[key], t.Made))
	}
}

// laneKey identifies a host, because two machines may have the same name.
type laneKey struct{ host, machine string }

func lane(key laneKey, runs []*Run, made time.Time) Host {
	h := Host{Host: key.host, Machine: key.machine, Runs: len(runs)}
	slices.SortStableFunc(runs, func(a, b *Run) int {
		from, to := a.span(made)
		start, end := b.span(made)
		return cmp.Or(from.Compare(start), to.Compare(end))
	})
	var until []time.Time // when each row becomes free
	for _, r := range runs {
		begin, end := r.span(made)
		r.Row = slices.IndexFunc(until, func(free time.Time) bool { return !free.After(begin) })
		if r.Row < 0 {
			r.Row = len(until)
			until = append(until, end)
		}
		until[r.Row] = end
		h.add(r, made)
	}
	h.Rows = len(until)
	if all := h.End.Sub(h.Start).Seconds() * float64(h.Rows); all > 0 {
		h.Utilisation = min(h.Busy/all, 1)
	}
	return h
}

func (h *Host) add(r *Run, made time.Time) {
	begin, end := r.work(made)
	if !begin.IsZero() && (h.Start.IsZero() || begin.Before(h.Start)) {
		h.Start = begin
	}
	h.End = later(h.End, end)
	h.Busy += end.Sub(begin).Seconds()
	switch r.State {
	case Done, Released:
		h.Done++
	case Failed, Lost, Dead, Interrupted:
		h.Failed++
	}
}

// work returns the interval that is drawn. It is empty if the start or the end is unknown, or if
// clocks disagree and the end precedes the start.
func (r *Run) work(made time.Time) (start, end time.Time) {
	start, end = r.Start, r.End
	if r.State == Running {
		end = made
	}
	if start.IsZero() {
		start = end
	}
	return start, later(start, end)
}

// span is work, extended by the time that the run waited for its lock.
func (r *Run) span(made time.Time) (start, end time.Time) {
	start, end = r.work(made)
	return start.Add(-time.Duration(r.Waited * float64(time.Second))), end
}

// sumUp counts the jobs and computes the time range of the timeline.
func (t *Timeline) sumUp(list *survey.Progress) {
	s := &t.Summary
	for i := range t.Jobs {
		s.add(&t.Jobs[i])
	}
	ended, since := t.listed()
	if list != nil && (t.Since.IsZero() || ended+list.Claimed > 0) {
		s.Jobs, s.Done, s.Failed, s.Retry = s.Jobs+list.Jobs, s.Done+list.Done, s.Failed+list.Failed, s.Retry+list.Retry
		s.Claimed, s.Pending, s.Other = list.Claimed, list.Pending, s.Other+list.Unknown
	}
	for _, h := range t.Hosts {
		if !h.Start.IsZero() && (s.Start.IsZero() || h.Start.Before(s.Start)) {
			s.Start = h.Start
		}
		s.End = later(s.End, h.End)
		s.Busy += h.Busy
	}
	if s.Claimed > 0 && !s.Start.IsZero() {
		s.End = later(s.End, t.Made)
	}
	s.Elapsed = s.End.Sub(s.Start).Seconds()
	if s.Elapsed > 0 {
		s.Rate = float64(s.Done+s.Failed) / s.Elapsed
	}
	if s.Claimed > 0 && ended > 0 {
		s.Left = float64(s.Claimed+s.Pending+s.Retry) / float64(ended) * t.Made.Sub(since).Seconds()
	}
}

// listed returns how many jobs of the list ended within the timeline, and when the first of them began.
func (t *Timeline) listed() (ended int, since time.Time) {
	for i := range t.Jobs {
		job := &t.Jobs[i]
		switch {
		case !job.listed:
			continue
		case job.chunk:
			ended += job.Done
		case job.State == Done || job.State == Failed:
			ended++
		}
		for k := range job.Runs {
			if start := job.Runs[k].Start; since.IsZero() || !start.IsZero() && start.Before(since) {
				since = start
			}
		}
	}
	return ended, since
}

// add counts a job that is not in the list. Without the list, a chunk counts for those of its jobs
// that the timeline does not show.
func (s *Summary) add(job *Job) {
	s.Runs += len(job.Runs)
	if job.State == Done && job.Output != "" {
		s.Incomplete++
	}
	if job.listed {
		return
	}
	n := 1
	if job.chunk {
		s.Jobs, s.Done, n = s.Jobs+job.Done, s.Done+job.Done, job.Left
		if job.State == Done {
			return // no host has started the remaining jobs
		}
	}
	s.Jobs += n
	switch job.State {
	case Done:
		s.Done++
	case Failed:
		s.Failed++
	case Retry:
		s.Retry++
	case Running:
		s.Running += n
	default:
		s.Other += n
	}
}

// natural compares names in natural order: node2 before node10.
func natural(a, b string) int {
	for a != "" && b != "" {
		n, m := digits(a), digits(b)
		if n == 0 || m == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, _ := strconv.ParseUint(a[:n], 10, 64) // overlong numbers compare as equal
		y, _ := strconv.ParseUint(b[:m], 10, 64)
		if x != y {
			return cmp.Compare(x, y)
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
