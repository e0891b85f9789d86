//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// workers change a list of 12 jobs in random order, as hosts do that run it, and know what readers must
// report.
type workers struct {
	*chunked
	dice  *rand.Rand
	units []*workedUnit
	state map[int]string // state of the jobs with a result, by number
}

// workedUnit is a chunk of the list, or a part that was returned from one.
type workedUnit struct {
	source.Range
	returned []source.Range
	lock     *multilock.Lock // nil if no process holds it
}

var exitOf = map[string]int{"done": 0, "failed": 3, "retry": 4}

// own returns the numbers of the jobs that were not returned.
func (u *workedUnit) own() (numbers []int) {
	for n := u.From; n <= u.To; n++ {
		if !slices.ContainsFunc(u.returned, func(r source.Range) bool { return r.From <= n && n <= r.To }) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func newWorkers(t *testing.T, dice *rand.Rand) *workers {
	w := &workers{chunked: newChunked(t), dice: dice, state: map[int]string{}}
	for from := 1; from <= 12; from += 4 {
		w.units = append(w.units, &workedUnit{Range: source.Range{From: from, To: from + 3}})
	}
	return w
}

// step changes one of the units.
func (w *workers) step() {
	u := w.units[w.dice.IntN(len(w.units))]
	if u.lock == nil {
		if w.dice.IntN(4) == 0 {
			w.forget(u)
			return
		}
		u.lock = w.take(u.From, u.To)
		return
	}
	switch w.dice.IntN(5) {
	case 0:
		require.NoError(w.t, u.lock.Release(w.t.Context()))
		u.lock = nil
	case 1:
		w.giveBack(u)
	default:
		w.end(u)
	}
}

// end ends some jobs of a unit.
func (w *workers) end(u *workedUnit) {
	for _, n := range u.own() {
		if before := w.state[n]; w.dice.IntN(3) == 0 && (before == "" || before == "retry") {
			w.state[n] = []string{"done", "done", "failed", "retry"}[w.dice.IntN(4)]
		}
	}
	w.record(u)
}

// giveBack makes a unit of the last job that was not started, or of the last two.
func (w *workers) giveBack(u *workedUnit) {
	own := u.own()
	free := func(n int) bool { return slices.Contains(own, n) && w.state[n] == "" }
	last := slices.IndexFunc(own, func(n int) bool { return free(n) && !free(n+1) })
	if last < 0 || len(own) == 1 || u.From == u.To {
		return
	}
	part := source.Range{From: own[last], To: own[last]}
	if w.dice.IntN(2) == 0 && free(part.From-1) && part.To-part.From+2 < u.To-u.From+1 {
		part.From--
	}
	u.returned = append(u.returned, part)
	slices.SortFunc(u.returned, func(a, b source.Range) int { return a.From - b.From })
	w.record(u)
	w.units = append(w.units, &workedUnit{Range: part})
}

// record commits the results of a unit, if there are any.
func (w *workers) record(u *workedUnit) {
	c := &source.Chunk{From: u.From, To: u.To, Returned: u.returned}
	for _, n := range u.own() {
		if state := w.state[n]; state != "" {
			c.Jobs = append(c.Jobs, source.ChunkJob{Number: n, Name: pageName(n), Exit: exitOf[state], Attempt: 1, Retry: state == "retry", Start: time.Now().UnixMilli(), Duration: 1000})
		}
	}
	if c.Count(); c.Recorded+c.GivenBack() == 0 {
		return
	}
	r := multilock.Result{Name: u.lock.Record().Name, Token: u.lock.Record().Token, By: u.lock.Record().Holder.Identity, Attempt: 1, Start: time.Now(), Chunk: c, Final: c.Final()}
	r.Exit = min(c.Recorded-c.Done, 1)
	require.NoError(w.t, u.lock.Commit(w.t.Context(), r))
	require.NoError(w.t, w.src.Record(w.t.Context(), []source.Event{source.CommittedEvent(r, time.Now())}))
}

// forget removes the result of one job of a free unit.
func (w *workers) forget(u *workedUnit) {
	for _, n := range u.own() {
		if w.state[n] != "" {
			require.Equal(w.t, "deleted the result of "+pageName(n)+"\n", w.must("clean", "--results", pageName(n)))
			delete(w.state, n)
			return
		}
	}
}

// pages returns the list.
func pages() []byte {
	var list bytes.Buffer
	for n := range 12 {
		fmt.Fprintf(&list, "page%d\tconvert %d\n", n+1, n+1)
	}
	return list.Bytes()
}

func pageName(n int) string { return fmt.Sprint("page", n) }

// sums returns how many jobs are in each state; "claimed" jobs have a holder and no result.
func (w *workers) sums() map[string]int {
	sums := map[string]int{"done": 0, "failed": 0, "retry": 0, "claimed": 0}
	for _, u := range w.units {
		for _, n := range u.own() {
			if state := w.state[n]; state != "" {
				sums[state]++
			} else if u.lock != nil {
				sums["claimed"]++
			}
		}
	}
	return sums
}

func (w *workers) isHeld(n int) bool {
	return slices.ContainsFunc(w.units, func(u *workedUnit) bool { return u.lock != nil && slices.Contains(u.own(), n) })
}

func (w *workers) read(into any, args ...string) {
	w.t.Helper()
	got := w.run(append(args, "--json")...)
	require.NoError(w.t, json.Unmarshal([]byte(got.stdout), into), "%v: %s", args, got.stderr)
}

// requireTold checks all readers.
func (w *workers) requireTold() {
	sums, all := w.sums(), []string{}
	for n := range 12 {
		all = append(all, pageName(n+1))
	}
	want := map[string]string{}
	for n, state := range w.state {
		want[pageName(n)] = state
	}
	var status struct {
		Locks   []struct{ Name, State string }
		Results struct {
			Done, Failed, Retry, Unknown int
			Jobs                         []struct{ Name, State string }
		}
	}
	for _, args := range [][]string{{"status", "--results"}, append([]string{"status"}, all...)} {
		status.Results.Jobs, status.Locks = nil, nil
		w.read(&status, args...)
		got := map[string]string{}
		for _, r := range status.Results.Jobs {
			require.NotContains(w.t, got, r.Name, args)
			got[r.Name] = r.State
		}
		require.Equal(w.t, want, got, args)
		require.Equal(w.t, []int{sums["done"], sums["failed"], sums["retry"], 0}, []int{status.Results.Done, status.Results.Failed, status.Results.Retry, status.Results.Unknown}, args)
	}
	for n, l := range status.Locks {
		held := w.isHeld(n+1) && w.state[n+1] != "done" && w.state[n+1] != "failed"
		require.Equal(w.t, map[bool]string{true: "held", false: "free"}[held], l.State, l.Name)
	}
	w.read(&status, "status")
	require.Equal(w.t, []int{sums["done"], sums["failed"], sums["retry"]}, []int{status.Results.Done, status.Results.Failed, status.Results.Retry})

	var report struct {
		Summary map[string]any
		Jobs    []struct{ Name, State string }
	}
	w.read(&report, "report")
	total := 0
	for what, n := range sums {
		require.InDelta(w.t, n, report.Summary[what], 0, "%s in %v", what, report.Summary)
		total += n
	}
	const listed = 12
	require.InDelta(w.t, listed, report.Summary["total"], 0, report.Summary)
	require.InDelta(w.t, listed-total, report.Summary["pending"], 0, report.Summary)
	for _, j := range report.Jobs {
		if _, chunk := joblist.ParseChunkName(j.Name); !chunk && want[j.Name] != "" {
			require.Equal(w.t, want[j.Name], j.State, j.Name)
		}
	}
	w.requireForeseen()
	w.requireAwaited(sums, want)
}

// requireForeseen checks what a batch would do.
func (w *workers) requireForeseen() {
	require.NoError(w.t, os.WriteFile(w.base+"/list", pages(), 0o600))
	rows := regexp.MustCompile(`(?m)^(page\d+) +(done|failed|would run again|would run|held)`).FindAllStringSubmatch(w.must("batch", "--dry-run", "--retries", "1", w.base+"/list"), -1)
	require.Len(w.t, rows, 12)
	for i, row := range rows {
		n, want := i+1, "would run"
		switch {
		case w.state[n] == "retry":
			want = "would run again"
		case w.state[n] != "":
			want = w.state[n]
		case w.isHeld(n):
			want = "held"
		}
		require.Equal(w.t, []string{pageName(n), want}, row[1:])
	}
}

// requireAwaited checks the ended jobs in a barrier.
func (w *workers) requireAwaited(sums map[string]int, states map[string]string) {
	final := slices.DeleteFunc(slices.Sorted(maps.Keys(states)), func(name string) bool { return states[name] == "retry" })
	if len(final) == 0 {
		return
	}
	ways := [][]string{{"--members", strings.Join(final, ",")}}
	if !slices.ContainsFunc(w.units, func(u *workedUnit) bool { return u.lock != nil }) {
		ways = append(ways, []string{"--expect", fmt.Sprint(len(final))})
	}
	for _, way := range ways {
		var got struct {
			Open     bool
			Done     int
			Failed   int
			Failures []struct{ Name string }
		}
		w.read(&got, append([]string{"wait", "--timeout", "1m"}, way...)...)
		require.True(w.t, got.Open, way)
		require.Equal(w.t, sums["done"], got.Done, way)
		failed := map[string]bool{}
		for _, f := range got.Failures {
			require.Equal(w.t, "failed", states[f.Name], f.Name)
			failed[f.Name] = true
		}
		require.Len(w.t, failed, sums["failed"], way)
		require.Len(w.t, got.Failures, sums["failed"], way)
		require.Equal(w.t, sums["failed"], got.Failed, way)
	}
}

// After any changes to a list, each reader reports each job once, and in the same state.
func TestReadersTellOfEachJobOnce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64() //nolint:gosec // chance needs no secrecy
	for n := range uint64(4) {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			t.Parallel()
			w := newWorkers(t, rand.New(rand.NewPCG(seed+n, 0))) //nolint:gosec // the same
			for range 8 {
				for range 5 {
					w.step()
				}
				w.requireTold()
			}
			for _, u := range w.units {
				if u.lock != nil {
					require.NoError(t, u.lock.Release(t.Context()))
					u.lock = nil
				}
			}
			w.requireTold()
		})
	}
}

// beside runs a reader during changes.
func (w *workers) beside(args ...string) ended {
	told := make(chan ended, 1)
	go func() { told <- w.run(args...) }()
	for {
		select {
		case got := <-told:
			return got
		default:
			w.step()
		}
	}
}

// A reader's report during changes may combine several moments. But it has all jobs that were there all the
// time, and none twice.
func TestReadersBesideAtWork(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64() //nolint:gosec // chance needs no secrecy
	t.Logf("seed %d", seed)
	w := newWorkers(t, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // the same
	w.ran(1, 4, 4, map[int]int{3: 3})
	w.units = w.units[1:]
	list := w.base + "/list"
	require.NoError(t, os.WriteFile(list, pages(), 0o600))
	for range 4 {
		var status struct {
			Results struct {
				Jobs []struct{ Name, State string }
			}
		}
		got := w.beside("status", "--results", "--json")
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &status), got.stderr)
		states := map[string]string{}
		for _, r := range status.Results.Jobs {
			require.NotContains(t, states, r.Name)
			states[r.Name] = r.State
		}
		for n := 1; n <= 4; n++ {
			require.Equal(t, map[bool]string{true: "failed", false: "done"}[n == 3], states[pageName(n)])
		}

		var report struct {
			Summary struct{ Total, Done, Failed, Retry, Claimed, Pending int }
		}
		got = w.beside("report", "--json")
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), got.stderr)
		sum := report.Summary
		require.Equal(t, 12, sum.Total)
		require.Equal(t, sum.Total, sum.Done+sum.Failed+sum.Retry+sum.Claimed+sum.Pending)
		require.GreaterOrEqual(t, sum.Done, 3)

		got = w.beside("batch", "--dry-run", list)
		require.Zero(t, got.code, got.stderr)
		require.Len(t, regexp.MustCompile(`(?m)^page\d+ +(done|failed|would run|held) `).FindAllString(got.stdout, -1), 12)
		require.Regexp(t, `(?s)page1 +done .*page3 +failed .*page4 +done `, got.stdout)

		require.Zero(t, w.beside("wait", "--members", "page1,page4", "--timeout", "1m").code)
		require.Equal(t, 1, w.beside("wait", "--members", "page1,page3", "--timeout", "1m").code)
	}
}
