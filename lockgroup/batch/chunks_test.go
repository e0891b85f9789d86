package batch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// inChunks runs a batch test in a synctest bubble, with a source that keeps chunks.
func inChunks(t *testing.T, test func(t *testing.T, v *grouptest.ChunkVenue, ran *runs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, grouptest.NewChunkVenue(), newRuns()) })
}

func lasts(d time.Duration) func(context.Context, batch.Attempt) error {
	return func(context.Context, batch.Attempt) error { time.Sleep(d); return nil }
}

// Short jobs are recorded together, and a chunk that is done costs no more requests.
// Rule: chunks, progress-map
func TestChunksOfShortJobs(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		const jobs = 1000
		list := ran.jobs(jobs, lasts(time.Millisecond))
		report, err := prepare(t, v, list, batch.Options{Workers: 4}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, jobs, report.Ran)
		ran.requireOnce(t, jobs)
		claims := v.Count("outcome")
		require.Less(t, claims, 50)
		require.LessOrEqual(t, v.Count("commit"), claims+2, "one record for each")
		report, err = prepare(t, v, list, batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: jobs, Done: jobs, Before: jobs}, report.Progress)
		require.Equal(t, claims, v.Count("outcome"))
		require.Zero(t, v.Count("result"))
	})
}

// A host that joins late while long jobs run gets a share of the jobs that others have not begun, and so
// does one that is idle while another host has one long job.
// Rule: give-back
func TestChunksAreGivenBack(t *testing.T) {
	for what, c := range map[string]struct {
		workers int
		length  func(seq int) time.Duration
		most    time.Duration
	}{
		"long jobs": {4, func(int) time.Duration { return 10 * time.Minute }, 60 * time.Minute},
		"a very long one": {1, func(seq int) time.Duration {
			return map[bool]time.Duration{true: time.Hour, false: time.Minute}[seq == 1]
		}, 62 * time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
				const jobs = 40
				list := ran.jobs(jobs, func(_ context.Context, a batch.Attempt) error { time.Sleep(c.length(a.Seq)); return nil })
				start := time.Now()
				var hosts sync.WaitGroup
				for n := range 2 {
					time.Sleep(time.Duration(n) * 20 * time.Second)
					b := prepare(t, v, list, batch.Options{Workers: c.workers})
					hosts.Go(func() {
						report, err := b.Run(inTime(t))
						if err != nil || report.Done != jobs || report.Trouble != nil {
							t.Errorf("%+v %v", report, err)
						}
					})
				}
				hosts.Wait()
				ran.requireOnce(t, jobs)
				require.Less(t, time.Since(start), c.most)
				require.Equal(t, bytes.Repeat([]byte{1}, len(onBoard(t, v))), onBoard(t, v), "all of each chunk, with its parts")
				read := v.Count("result")
				report, err := prepare(t, v, list, batch.Options{}).Run(inTime(t))
				require.NoError(t, err)
				require.Equal(t, jobs, report.Before)
				require.Equal(t, read, v.Count("result"), "who comes later reads nothing but the board")
			})
		})
	}
}

// onBoard returns the progress map's bytes of the chunks.
func onBoard(t *testing.T, v *grouptest.ChunkVenue) []byte {
	t.Helper()
	b, err := v.OpenProgressMap(t.Context())
	require.NoError(t, err)
	read, err := b.Read(t.Context(), 100)
	require.NoError(t, err)
	return read[1:]
}

// The host that ends the last part of a chunk marks the chunk as done, but not while another host holds a
// part, because it may be about to delete its record, or if a part has failed.
// Rule: progress-map, give-back
func TestLastPieceOfAChunk(t *testing.T) {
	for what, c := range map[string]struct {
		held  string
		looks bool // its holder leaves a second after the last job
		exit  int
		there byte
	}{
		"all are done":                {there: 1},
		"somebody has a piece":        {held: "#jobs-3-3"},
		"somebody has the whole":      {held: "#jobs-1-4"},
		"another process inspects it": {held: "#jobs-1-4", looks: true, there: 1},
		"a job of one has failed":     {exit: 1},
	} {
		t.Run(what, func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
				done := func(number, exit int) source.ChunkJob {
					return source.ChunkJob{Number: number, Name: fmt.Sprintf("job%03d", number), Attempt: 1, Exit: exit}
				}
				whole := chunkOf(1, 4, done(1, 0), done(2, 0))
				whole.Chunk.Returned = []source.Range{{From: 3, To: 3}, {From: 4, To: 4}}
				v.Commit(whole)
				v.Commit(chunkOf(3, 3, done(3, c.exit)))
				if c.held != "" {
					theirs := grouptest.Alive("node7")
					theirs.Record.Token = whole.Token // the holder of the whole chunk wrote that record
					v.Hold(c.held, theirs)
				}
				list := ran.jobs(16, func(_ context.Context, a batch.Attempt) error {
					if a.Seq == 4 && c.looks {
						time.AfterFunc(time.Second, func() { v.Release(c.held) })
					}
					return nil
				})
				report, err := prepare(t, v, list, batch.Options{}).Run(inTime(t))
				require.True(t, err == nil || errors.Is(err, lockgroup.ErrNotDone), err)
				require.Equal(t, batch.Progress{Total: 16, Done: 16 - c.exit, Failed: c.exit, Before: 3, Ran: 13}, report.Progress)
				require.Equal(t, append([]byte{c.there}, bytes.Repeat([]byte{1}, 9)...), onBoard(t, v))
			})
		})
	}
}

// chunkOf returns another host's record of a chunk, with results of some of its jobs.
func chunkOf(from, to int, jobs ...source.ChunkJob) multilock.Result {
	c := &source.Chunk{From: from, To: to, Jobs: jobs}
	c.Count()
	return multilock.Result{
		Name: joblist.ChunkName(source.Range{From: from, To: to}), Token: "theirs", By: process.Identity{Host: "node7"}, Attempt: 1, Final: c.Final(), Chunk: c,
	}
}

// Jobs that a dead holder has recorded do not run again, and stay recorded as the dead holder's, even if it
// was on this host; a failure that may be retried runs again.
// Rule: chunks, I7
func TestChunkIsGoneOnWith(t *testing.T) {
	for _, host := range []string{"node7", "here"} {
		t.Run(host, func(t *testing.T) { testChunkIsGoneOnWith(t, process.Identity{Host: host, Boot: "then", PID: 7}) })
	}
}

func testChunkIsGoneOnWith(t *testing.T, before process.Identity) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		done := source.ChunkJob{Number: 1, Name: "job001", Attempt: 1}
		failed := source.ChunkJob{Number: 3, Name: "job003", Attempt: 1, Exit: 1, Retry: true}
		theirs := chunkOf(1, 4, done, failed)
		theirs.By = before
		v.Commit(theirs)
		v.Hold("#jobs-1-4", grouptest.Seen(multilock.StateDead, "node7"))
		numbers := map[int]int{}
		report, err := prepare(t, v, ran.jobs(16, func(_ context.Context, a batch.Attempt) error { numbers[a.Seq] = a.Number; return nil }), batch.Options{Retries: 1}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 16, Done: 16, Before: 1, Ran: 15, TakenOver: 1}, report.Progress)
		require.Zero(t, ran.of("job001"))
		require.Equal(t, map[int]int{2: 1, 3: 2, 4: 1}, map[int]int{2: numbers[2], 3: numbers[3], 4: numbers[4]})
		r, err := v.Result(t.Context(), "#jobs-1-4")
		require.NoError(t, err)
		require.True(t, r.Final)
		inherited, own := r.Chunk.Jobs[0].Result(r), r.Chunk.Jobs[2].Result(r)
		require.Equal(t, process.Identity{Host: before.Host}, inherited.By, "no more is kept of him")
		require.Empty(t, inherited.Token, "it ran under another lock than the last")
		require.Equal(t, r.By, own.By)
		require.Equal(t, r.Token, own.Token)
		require.Equal(t, 2, r.Chunk.Jobs[2].Attempt)
	})
}

// A host that takes over a chunk from a dead host records that at once, so that other hosts can continue
// with the chunk's parts.
// Rule: give-back
func TestChunkWithPartsIsTakenOver(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		theirs := chunkOf(1, 4)
		theirs.Chunk.Returned = []source.Range{{From: 2, To: 4}}
		v.Commit(theirs)
		for from, to := 5, 7; from <= 16; from, to = to+1, max(to+1, 16-to) { // the rest is done
			var jobs []source.ChunkJob
			for n := from; n <= to; n++ {
				jobs = append(jobs, source.ChunkJob{Number: n, Name: fmt.Sprintf("job%03d", n), Attempt: 1})
			}
			v.Commit(chunkOf(from, to, jobs...))
		}
		v.Hold("#jobs-1-4", grouptest.Seen(multilock.StateDead, "node7"))
		start := time.Now()
		var hosts sync.WaitGroup
		for range 2 {
			b := prepare(t, v, ran.jobs(16, lasts(time.Hour)), batch.Options{Workers: 1})
			hosts.Go(func() {
				if _, err := b.Run(inTime(t)); err != nil {
					t.Error(err)
				}
			})
		}
		hosts.Wait()
		ran.requireOnce(t, 4)
		require.Less(t, time.Since(start), 150*time.Minute)
	})
}

// A list of an earlier version, in which each job had a lock of its own, is rejected: its results are
// stored elsewhere.
// Rule: manifest
func TestListWithoutChunksIsRefused(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		_, err := v.Publish(t.Context(), []byte("job001\tmake\n"))
		require.NoError(t, err)
		_, err = prepare(t, v, ran.jobs(1, succeeds), batch.Options{}).Run(inTime(t))
		require.ErrorIs(t, err, multilock.ErrInvalid)
		require.ErrorContains(t, err, "another version")
		require.Zero(t, ran.names())
	})
}

// A failure on one host ends the batch on the others, although their jobs are long.
// Rule: progress-map
func TestHaltIsHeardOf(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		opt := batch.Options{Halt: batch.Halt{When: batch.HaltNow, Number: 1}}
		var start time.Time
		list := ran.jobs(8, func(ctx context.Context, a batch.Attempt) error {
			if a.Seq == 1 {
				time.Sleep(time.Minute)
				start = time.Now()
				return errWork
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		var hosts sync.WaitGroup
		for range 2 {
			b := prepare(t, v, list, opt)
			hosts.Go(func() {
				report, err := b.Run(inTime(t))
				if halted := new(batch.HaltError); err == nil || !errors.As(err, &halted) || report.Failed != 1 {
					t.Errorf("%+v %v", report, err)
				}
			})
		}
		hosts.Wait()
		require.Less(t, time.Since(start), 5*time.Second)
	})
}

// A host that deletes results may die halfway, or another host may work on another list: unrecorded jobs
// are not done, whatever the progress map shows, and records of other lists' jobs do not count.
// Rule: progress-map
func TestWhatIsNotRecordedIsNotDone(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		b, err := v.OpenProgressMap(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Write(t.Context(), 1, 1))
		theirs := func(number int) source.ChunkJob { return source.ChunkJob{Number: number, Name: "theirs", Attempt: 1} }
		v.Commit(chunkOf(5, 7, theirs(5), theirs(6), theirs(7)))
		v.Commit(multilock.Result{Name: "#jobs-8-9", Token: "x", Attempt: 1, Final: true, Chunk: &source.Chunk{From: 1000, To: 1000, Jobs: []source.ChunkJob{theirs(1000)}}})
		list := ran.jobs(16, func(_ context.Context, a batch.Attempt) error {
			if a.Seq == 1 {
				require.NotEqual(t, byte(1), onBoard(t, v)[0], "others would believe it as soon as there is a result")
			}
			return nil
		})
		report, err := prepare(t, v, list, batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 16, Done: 16, Ran: 16}, report.Progress)
		ran.requireOnce(t, 16)
	})
}

// Small chunks that were claimed ahead while long jobs run go to other hosts unchanged.
// Rule: give-back
func TestWholeChunksAreGivenBack(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		const jobs = 64
		v.Latency = time.Millisecond
		list := ran.jobs(jobs, func(_ context.Context, a batch.Attempt) error {
			length := 5 * time.Millisecond
			if a.Seq > jobs-8 {
				length = 10 * time.Minute
			}
			time.Sleep(length)
			return nil
		})
		start := time.Now()
		var hosts sync.WaitGroup
		for n := range 2 {
			time.Sleep(time.Duration(n) * time.Minute)
			b := prepare(t, v, list, batch.Options{Workers: 4})
			hosts.Go(func() {
				report, err := b.Run(inTime(t))
				if err != nil || report.Done != jobs || report.Trouble != nil {
					t.Errorf("%+v %v", report, err)
				}
			})
		}
		hosts.Wait()
		ran.requireOnce(t, jobs)
		require.Less(t, time.Since(start), 20*time.Minute)
	})
}

// With any record of a chunk and any progress map, except one that marks this chunk as done, the batch
// ends, and runs each job once, unless a result is recorded.
// Rule: progress-map, chunks
func FuzzRecord(f *testing.F) {
	for _, record := range []string{
		``, `{"from":1,"to":4,"returned":[{"from":2,"to":3}]}`, `{"from":1,"to":4,"returned":[{"from":1,"to":2},{"from":3,"to":4}]}`, `{"from":1,"to":64}`,
		`{"from":1,"to":4}` + "\n" + `{"i":1,"n":"job001","a":1}` + "\n" + `{"i":3,"n":"job003","x":1,"a":1,"r":true}` + "\n" + `{"i":4,"n":"job003","g":"killed","a":7}`,
	} {
		f.Add([]byte{1, 1, 2, 255, 0, 1}, []byte(record))
	}
	f.Fuzz(func(t *testing.T, onBoard, record []byte) {
		lines := bytes.Split(record, []byte("\n"))
		chunk := new(source.Chunk)
		if json.Unmarshal(lines[0], chunk) != nil {
			chunk = nil
		}
		for i := 1; chunk != nil && i < len(lines); i++ {
			var job source.ChunkJob
			if json.Unmarshal(lines[i], &job) == nil {
				chunk.Jobs = append(chunk.Jobs, job)
			}
		}
		r, err := multilock.Result{Name: "#jobs-1-4", Token: "theirs", By: process.Identity{Host: "node7"}, Attempt: 1, Chunk: chunk}.Read(source.ResultVersion)
		if err != nil {
			return // no source returns it
		}
		inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
			const jobs = 16
			b, err := v.OpenProgressMap(t.Context())
			require.NoError(t, err)
			for at, value := range onBoard[:min(len(onBoard), jobs)] {
				if at != 1 || value != 1 || chunk == nil {
					require.NoError(t, b.Write(t.Context(), at, value))
				}
			}
			recorded := map[string]bool{}
			if chunk != nil {
				v.Commit(r)
				joblist.EachJob(r, func(name string, r multilock.Result) { recorded[name] = recorded[name] || r.Final || r.OK() })
			}
			report, err := prepare(t, v, ran.jobs(jobs, succeeds), batch.Options{Workers: 2}).Run(inTime(t))
			require.True(t, err == nil || errors.Is(err, lockgroup.ErrNotDone), err)
			require.Equal(t, jobs, report.Done+report.Failed)
			for name, count := range ran.count {
				require.Equal(t, 1, count, name)
			}
			require.LessOrEqual(t, jobs-len(ran.count), len(recorded))
		})
	})
}

// Jobs of any length, some of which fail at first, on hosts that come and go, or are busy, sometimes or
// always: each job succeeds once, and the list is completed on all hosts.
// Rule: chunks, give-back
func TestAnyListEnds(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // chance needs no secrecy
	for n := range uint64(50) {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) { anyList(t, v, ran, seed+n) })
		})
	}
}

func anyList(t *testing.T, v *grouptest.ChunkVenue, ran *runs, seed uint64) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the same
	chance := func(of ...time.Duration) time.Duration { return of[dice.IntN(len(of))] }
	v.Latency = chance(0, time.Millisecond, 20*time.Millisecond, 300*time.Millisecond)
	list := make([]batch.Job, 1+dice.IntN(300))
	order := []batch.Order{batch.OrderList, batch.OrderRandom}[dice.IntN(2)]
	length := time.Duration(0)
	for i := range list {
		if dice.IntN(4) == 0 {
			length = chance(0, time.Millisecond, time.Millisecond, 30*time.Second, 10*time.Minute)
		}
		fails := dice.IntN(9) == 0
		name, length := fmt.Sprint("job", i), length
		list[i] = batch.Job{Name: name, Work: func(ctx context.Context, a batch.Attempt) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(length):
			}
			if fails && a.Number == 1 {
				return errWork
			}
			ran.add(name)
			return nil
		}}
	}
	var hosts sync.WaitGroup
	for host := range 1 + dice.IntN(5) {
		time.Sleep(chance(0, time.Second, time.Minute, 30*time.Minute))
		b := prepare(t, v, list, batch.Options{Workers: 1 + dice.IntN(8), Retries: 1, Order: order, Busy: busyTimes(chance, host)})
		ctx, end := context.WithCancel(inTime(t))
		defer end()
		if leaves := chance(time.Second, time.Minute, 20*time.Minute); host > 0 && dice.IntN(2) == 0 {
			time.AfterFunc(leaves, []func(){end, b.Drain}[dice.IntN(2)])
		}
		hosts.Go(func() {
			report, err := b.Run(ctx)
			if left := errors.Is(err, batch.ErrDrained) || errors.Is(err, context.Canceled); err != nil && !left || report.Trouble != nil {
				t.Errorf("host %d: %+v %v", host, report, err)
			}
		})
	}
	hosts.Wait()
	ran.requireOnce(t, len(list))
	time.Sleep(time.Minute) // for calls that hung
}

// busyTimes returns when a host is busy: never, always unless it is the first, or at times.
func busyTimes(chance func(of ...time.Duration) time.Duration, host int) func() string {
	turn, offset := chance(0, 0, time.Hour, 20*time.Second, 3*time.Minute), chance(0, 1)
	if turn == 0 {
		return nil
	}
	start := time.Now()
	return ifBusy(func() bool {
		return turn == time.Hour && host > 0 || (time.Since(start)/turn+offset)%2 == 0 && turn < time.Hour
	})
}

// Jobs that run at the same time have different slots, from 1 to the number of workers.
// Rule: none (numbers for jobs)
func TestSlotsOfJobs(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		var mu sync.Mutex
		busy, used := map[int]bool{}, map[int]bool{}
		report, err := prepare(t, v, ran.jobs(40, func(_ context.Context, a batch.Attempt) error {
			mu.Lock()
			if busy[a.Slot] {
				t.Errorf("slot %d is used twice", a.Slot)
			}
			busy[a.Slot], used[a.Slot] = true, true
			mu.Unlock()
			time.Sleep(time.Duration(a.Seq) * time.Second)
			mu.Lock()
			defer mu.Unlock()
			busy[a.Slot] = false
			return nil
		}), batch.Options{Workers: 4}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 40, report.Ran)
		require.Equal(t, map[int]bool{1: true, 2: true, 3: true, 4: true}, used)
	})
}
