//go:build unix

package main_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/source"
)

// chunked is a station with a list of 12 jobs, page1 to page12, in chunks of four.
type chunked struct {
	*station
	src *fslock.Source
}

func newChunked(t *testing.T) *chunked {
	t.Helper()
	s := &chunked{station: newStation(t)}
	s.src = fslocktest.Open(t, fslock.Options{Base: s.base})
	_, err := s.src.Publish(t.Context(), append([]byte("#chunks of 4\n"), pages()...))
	require.NoError(t, err)
	return s
}

// take acquires the lock of a chunk.
func (s *chunked) take(from, to int) *multilock.Lock {
	s.t.Helper()
	lock, err := multilock.TryAcquire(s.t.Context(), s.src, joblist.ChunkName(source.Range{From: from, To: to}), multilock.Options{Command: "batch"})
	require.NoError(s.t, err)
	return lock
}

// commit records that the first jobs of a chunk have ended; exits has the exit codes of failed jobs.
func (s *chunked) commit(lock *multilock.Lock, ended int, exits map[int]int, returned ...source.Range) {
	s.t.Helper()
	jobs, ok := joblist.ParseChunkName(lock.Record().Name)
	require.True(s.t, ok)
	c := &source.Chunk{From: jobs.From, To: jobs.To, Returned: returned}
	for n := jobs.From; n < jobs.From+ended; n++ {
		c.Jobs = append(c.Jobs, source.ChunkJob{Number: n, Name: fmt.Sprint("page", n), Exit: exits[n], Attempt: 1, Start: time.Now().UnixMilli(), Duration: 1000})
	}
	c.Count()
	r := multilock.Result{Attempt: 1, Start: time.Now(), Duration: time.Second, Chunk: c, Final: c.Final()}
	if c.Failed > 0 {
		r.Exit = 1
	}
	r.Name, r.Token, r.By = lock.Record().Name, lock.Record().Token, lock.Record().Holder.Identity
	require.NoError(s.t, lock.Commit(s.t.Context(), r))
	require.NoError(s.t, s.src.Record(s.t.Context(), []source.Event{source.CommittedEvent(r, time.Now())}))
}

// ran records a chunk's result, and releases its lock.
func (s *chunked) ran(from, to, ended int, exits map[int]int, returned ...source.Range) {
	s.t.Helper()
	lock := s.take(from, to)
	s.commit(lock, ended, exits, returned...)
	require.NoError(s.t, lock.Release(s.t.Context()))
}

func TestStatusSeesTheJobsOfChunks(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, nil)
	s.ran(5, 8, 2, map[int]int{6: 3}, source.Range{From: 7, To: 8})
	s.ran(7, 8, 2, nil)
	held := s.take(9, 12)
	s.commit(held, 1, nil)

	text := s.must("status")
	require.Regexp(t, `(?m)^#jobs-9-12 +held .* jobs 9 to 12, 1 done `, text)
	require.Regexp(t, `(?m)^8 of 12 jobs done \(75 % ended\), 1 failed, 3 claimed: page6 \(exit 3 on \S+, \S+ ago\)$`, text)
	table := s.must("status", "--results")
	require.Regexp(t, `(?s)page1 +done .*page5 +done .*page6 +failed +3 .*page7 +done .*page9 +done `, table)
	require.NotContains(t, table, "page10")

	one := s.run("status", "page7", "page6", "page10", "page9").stdout
	require.Regexp(t, `(?m)^page7 +free `, one)
	require.Regexp(t, `(?m)^page7 +done +0 `, one)
	require.Regexp(t, `(?m)^page6 +failed +3 `, one)
	require.Regexp(t, `(?m)^page10 +held .* it is one of jobs 9 to 12, 1 done: `, one)
	require.Regexp(t, `(?m)^page9 +free `, one)
	require.NotContains(t, one, "page8")

	var report struct{ Locks []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(s.run("status", "--json", "page10").stdout), &report))
	require.Equal(t, "page10", report.Locks[0]["name"])
	require.Equal(t, map[string]any{"from": 9.0, "to": 12.0, "done": 1.0, "failed": 0.0}, report.Locks[0]["chunk"])
}

func TestWaitSeesTheJobsOfChunks(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, map[int]int{2: 3})
	s.ran(5, 8, 4, nil)
	require.Zero(t, s.run("wait", "--members", "page1,page5,page8").code)
	for _, args := range [][]string{{"--members", "page1,page2"}, {"--expect", "8"}, {"--settle", "0"}} {
		got := s.run(append([]string{"wait"}, args...)...)
		require.Equal(t, 1, got.code)
		require.Regexp(t, `job "page2" failed with exit code 3 on `, got.stderr)
		require.NotContains(t, got.stderr, "#jobs")
	}
	held := s.take(9, 12)
	s.commit(held, 3, nil)
	got := s.run("wait", "--timeout", "1s", "--members", "page9,page12")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "1 job without a final result: page12")
	require.Regexp(t, `lock "#jobs-9-12" \(jobs 9 to 12\) is held: `, got.stderr)
}

// Rule: forget-chunks
func TestCleanForgetsOneJobOfAChunk(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, map[int]int{2: 3})
	s.ran(5, 8, 2, nil, source.Range{From: 7, To: 8})
	s.ran(7, 8, 2, nil)
	board, err := s.src.OpenProgressMap(t.Context())
	require.NoError(t, err)
	require.NoError(t, board.Write(t.Context(), 0, 'x'))
	require.NoError(t, board.Close())

	require.Equal(t, "would delete the result of page2\n", s.must("clean", "--results", "--dry-run", "page2", "page9"))
	require.Contains(t, s.must("status"), "7 of 12 jobs done (66 % ended), 1 failed")
	require.Equal(t, "deleted the result of page2\ndeleted the result of page7\n", s.must("clean", "--results", "page2", "page7", "page9"))
	require.Contains(t, s.must("status"), "6 of 12 jobs done (50 % ended), 6 pending\n")
	require.NotContains(t, s.must("status", "page2"), "RESULT")
	require.Equal(t, "no results to delete\n", s.must("clean", "--results", "page2"))
	r, err := s.src.Result(t.Context(), "#jobs-1-4")
	require.NoError(t, err)
	require.False(t, r.Final)
	require.True(t, r.OK())
	events := s.history("page7")
	require.Equal(t, "deleted", events[len(events)-1].What)
	board, err = s.src.OpenProgressMap(t.Context())
	require.NoError(t, err)
	read, err := board.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read, "or other hosts believe that the chunk is final")
	require.NoError(t, board.Close())

	require.Equal(t, "deleted the result of page5\ndeleted the result of page6\n", s.must("clean", "--results", "#jobs-5-8"))
	r, err = s.src.Result(t.Context(), "#jobs-5-8")
	require.NoError(t, err)
	require.Equal(t, []source.Range{{From: 7, To: 8}}, r.Chunk.Returned, "somebody else may be at work on those")
	held := s.take(1, 4)
	got := s.run("clean", "--results", "page1", "page8")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stdout, "deleted the result of page8")
	require.Contains(t, got.stderr, `lock "#jobs-1-4" is held by`)
	require.NoError(t, held.Release(t.Context()))
}

// All results and the list are removed: but no chunk's while another process works on the list, and those of
// a part before those of the chunk that returned it.
// Rule: forget-chunks
func TestCleanForgetsChunks(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, map[int]int{2: 3})
	s.ran(5, 8, 2, nil, source.Range{From: 7, To: 8})
	s.ran(7, 8, 2, nil)
	held := s.take(9, 12)
	for _, options := range [][]string{{"--dry-run"}, nil} {
		got := s.run(append([]string{"clean", "--results"}, options...)...)
		require.Equal(t, 121, got.code)
		require.Contains(t, got.stderr, `lock "#jobs-9-12" is held by`)
		require.Contains(t, s.must("status"), "7 of 12 jobs done (66 % ended), 1 failed")
	}
	require.NoError(t, held.Release(t.Context()))
	require.Equal(t, "would delete the results of jobs 1 to 8\n", s.must("clean", "--results", "--dry-run"))
	require.Equal(t, "deleted the results of jobs 1 to 8\n", s.must("clean", "--results"))
	require.Equal(t, "no results to delete\n", s.must("clean", "--results"))
	require.Equal(t, "nothing is held in "+s.base+"/.locks\n", s.must("status"))
	_, err := s.src.OpenManifest(t.Context())
	require.ErrorContains(t, err, "no such file")
}

func TestReportTakesJobsFromChunks(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, map[int]int{2: 3})
	s.ran(5, 8, 2, nil, source.Range{From: 7, To: 8})
	s.ran(7, 8, 2, nil)
	held := s.take(9, 12)
	s.commit(held, 1, nil)
	var report struct {
		Summary map[string]any
		Jobs    []struct {
			Name, State, Why string
			Unfinished       int
			Runs             []map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("report", "--json")), &report))
	for what, n := range map[string]float64{"total": 12, "done": 8, "failed": 1, "running": 0, "claimed": 3, "pending": 0, "run_count": 9} {
		require.InDelta(t, n, report.Summary[what], 0, what)
	}
	require.Len(t, report.Jobs, 10)
	require.Equal(t, "#jobs-9-12", report.Jobs[0].Name)
	require.Equal(t, "running", report.Jobs[0].State)
	require.Equal(t, 3, report.Jobs[0].Unfinished)
	failed := report.Jobs[2]
	require.Equal(t, "page2", failed.Name)
	require.Equal(t, "failed", failed.State)
	require.Len(t, failed.Runs, 1)
	require.InDelta(t, 3, failed.Runs[0]["exit"], 0)
	require.Contains(t, s.must("report", "-o", "-"), "jobs 9 to 12")

	table := s.must("history")
	require.Regexp(t, `#jobs-1-4 +recorded .* 3 done, 1 failed, of jobs 1 to 4`, table)
}

func TestDryRunOfABatchSeesChunks(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, map[int]int{2: 3})
	held := s.take(5, 8)
	s.commit(held, 1, nil, source.Range{From: 7, To: 8})
	s.ran(9, 10, 2, nil)
	s.spoil("#jobs-9-10", "torn")
	list := s.base + "/list"
	require.NoError(t, os.WriteFile(list, pages(), 0o600))
	table := s.must("batch", "--dry-run", list)
	require.Regexp(t, `(?m)^page1 +done `, table)
	require.Regexp(t, `(?m)^page2 +failed \(exit 3 on `, table)
	require.Regexp(t, `(?m)^page5 +done `, table)
	require.Regexp(t, `(?m)^page6 +held by \S+ `, table)
	require.Regexp(t, `(?m)^page7 +would run `, table, "it was given back")
	require.Regexp(t, `(?m)^page9 +unknown result `, table)
	require.Regexp(t, `(?m)^page11 +would run `, table)
}

// All commands that count the jobs of a list agree.
func TestCountsOfAListAgree(t *testing.T) {
	t.Parallel()
	s := newChunked(t)
	s.ran(1, 4, 4, map[int]int{2: 3})
	held := s.take(5, 8)
	s.commit(held, 1, nil)
	s.must("run", "-q", "-n", "alone", "--once", "--", "true")
	want := map[string]float64{"done": 4, "failed": 1, "retry": 0, "claimed": 3, "pending": 4}

	var status struct {
		Results struct{ Progress map[string]float64 }
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("status", "--json")), &status))
	var report struct{ Summary map[string]any }
	require.NoError(t, json.Unmarshal([]byte(s.must("report", "--json")), &report))
	metrics := s.must("metrics")
	for state, n := range want {
		require.InDelta(t, n, status.Results.Progress[state], 0, state)
		require.Contains(t, metrics, fmt.Sprintf("multilock_list_jobs{group=\".locks\",state=%q} %v\n", state, n))
		if state == "done" {
			n++ // the job that is not in the list
		}
		require.InDelta(t, n, report.Summary[state], 0, state)
	}
	require.InDelta(t, 12, status.Results.Progress["total"], 0)
	require.InDelta(t, 13, report.Summary["total"], 0)
	require.Positive(t, report.Summary["remaining_seconds"])
	require.Contains(t, s.must("status"), "4 of 12 jobs done (41 % ended), 1 failed, 3 claimed, 4 pending: page2 (exit 3 on ")
	require.Contains(t, s.must("report", "-o", s.base+"/page.html"), "13 jobs, 5 done, 1 failed, 3 claimed, 4 pending\n")
	runs, err := csv.NewReader(strings.NewReader(s.must("report", "--csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, runs, 7, "a header, and a line for each run that ended")
	require.NoError(t, held.Release(t.Context()))
	require.Contains(t, s.must("status"), "4 of 12 jobs done (41 % ended), 1 failed, 7 pending: ")
}
