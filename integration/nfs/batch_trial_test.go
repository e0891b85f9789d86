package nfs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// trialTTL is long enough for holders to renew in time on a busy emulated machine.
const trialTTL = 40 * time.Second

// trial is one list of jobs that a worker on each host works through, while workers are killed,
// hosts crash, and cables are cut. It is judged by the witness and the server's own disk.
type trial struct {
	place
	t       *testing.T
	witness *witness
	jobs    []string
	width   int
	window  int    // how many finished jobs may not be recorded yet
	list    string // the file with the jobs

	workers map[host]*batchWorker
	lives   int
	struck  map[string]int // number of faults, by worker
}

// batchWorker is a process that works through the list. Its parent is the lab's program "on";
// killing that kills the worker, too.
type batchWorker struct {
	*exec.Cmd
	name string
	said string // the file with its output
}

func newTrial(t *testing.T, jobs, width int) *trial {
	t.Helper()
	r := &trial{t: t, place: newPlace(t), witness: newWitness(t), width: width, workers: map[host]*batchWorker{}, struck: map[string]int{}}
	for n := range jobs {
		r.jobs = append(r.jobs, fmt.Sprintf("job%04d", n))
	}
	require.NoError(t, os.MkdirAll(r.results(), 0o777))
	r.witness.watch(t, r.results())
	t.Cleanup(func() {
		for _, w := range r.workers {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	})
	return r
}

// writeList writes the list of jobs. Every fourth one takes a while.
func (r *trial) writeList() {
	var text strings.Builder
	for n, name := range r.jobs {
		work := ":"
		if n%4 == 0 {
			work = "sleep 0.2"
		}
		fmt.Fprintf(&text, "%s\t%s\n", name, r.witness.shell(work))
	}
	r.list = r.file("jobs.txt", text.String())
}

func (r *trial) start(h host) {
	r.t.Helper()
	r.lives++
	w := &batchWorker{name: fmt.Sprintf("%s.%d", h.name, r.lives)}
	w.said = filepath.Join(filepath.Dir(r.witness.path), w.name)
	output, err := os.Create(w.said)
	require.NoError(r.t, err)
	defer output.Close()
	w.Cmd = exec.Command("on", h.name, command, "-d", r.on(h), "-g", ".locks", "batch", "-q", "-j", strconv.Itoa(r.width), "--ttl", trialTTL.String(), r.list)
	w.Env = append(os.Environ(), workerVariable+"="+w.name)
	w.Stdout, w.Stderr = output, output
	require.NoError(r.t, w.Start())
	r.workers[h] = w
}

// kill kills a worker and starts a new one in its place.
func (r *trial) kill(h host, _ int) {
	r.t.Helper()
	require.NoError(r.t, r.workers[h].Process.Kill())
	_ = r.workers[h].Wait()
	r.start(h)
}

func (r *trial) crash(h host, _ int) {
	r.t.Helper()
	lab(r.t, "host", "crash", h.name)
	_ = r.workers[h].Wait()
	lab(r.t, "host", "boot", h.name)
	r.start(h)
}

// cut unplugs a host's network cable until the other hosts have progressed.
func (r *trial) cut(h host, until int) {
	r.t.Helper()
	lab(r.t, "net", "cut", h.name)
	defer lab(r.t, "net", "heal", h.name)
	r.await(until)
}

// await waits until that many jobs have a result.
func (r *trial) await(jobs int) {
	r.t.Helper()
	awaitCount(r.t, "jobs done", jobs, func() int { return r.witness.commits(r.t) })
}

// end waits for the workers, which must find all jobs done.
func (r *trial) end() {
	r.t.Helper()
	r.await(len(r.jobs))
	for h, w := range r.workers {
		require.NoError(r.t, awaitExit(r.t, w.Wait), "%s: %s", w.name, r.output(w))
		delete(r.workers, h)
	}
}

func (r *trial) output(w *batchWorker) string {
	text, err := os.ReadFile(w.said)
	require.NoError(r.t, err)
	return string(text)
}

// faults returns the violations found in the witness and the results.
func (r *trial) faults() []string {
	r.t.Helper()
	src, err := fslock.Open(fslock.Options{Base: r.stored()})
	require.NoError(r.t, err)
	defer src.Close()
	c := circumstances{jobs: r.jobs, width: r.width + r.window, struck: r.struck, results: map[string]multilock.Result{}, broken: map[string]bool{}}
	names, err := src.Results(r.t.Context())
	require.NoError(r.t, err)
	var mu sync.Mutex
	require.NoError(r.t, joblist.EachResult(r.t.Context(), src, names, func(name string, result multilock.Result) {
		mu.Lock()
		defer mu.Unlock()
		c.results[name] = result
	}))
	events, err := source.Collect(src.History(r.t.Context(), time.Time{}))
	require.NoError(r.t, err)
	for _, e := range events {
		if e.What == source.EventBroke {
			c.broken[e.Token] = true
		}
	}
	a := r.witness.read(r.t)
	r.t.Logf("%d runs of %d jobs, %d locks taken over", a.runs(), len(r.jobs), len(c.broken))
	return a.faults(c)
}

// requireOpen checks that a barrier for the jobs opens on each host.
func (r *trial) requireOpen() {
	r.t.Helper()
	for _, h := range hosts() {
		barrier, err := lockgroup.NewBarrier(r.source(r.t, h), lockgroup.BarrierOptions{Members: r.jobs})
		require.NoError(r.t, err)
		report, err := barrier.Wait(within(r.t))
		require.NoError(r.t, err, "%s: %+v", h.name, report)
	}
}

// Whichever process is killed, whichever host crashes or loses its network, and whenever: each job
// gets one result, and never runs again once the result is in place.
// Rule: I3, I7, chunks
func TestBatchCommandThroughCrashes(t *testing.T) {
	needCommand(t)
	r := newTrial(t, jobsAtLength(30, 2000), 3)
	r.window = 64 // the jobs of a chunk
	r.writeList()
	for _, h := range hosts() {
		r.start(h)
	}
	r.strike(jobsAtLength(2, 12), jobsAtLength(1, 4), jobsAtLength(0, 3))
	r.end()
	require.Empty(t, r.faults())
	r.requireOpen()
}

// strike injects the faults in random order on random hosts, spread over the whole list.
func (r *trial) strike(kills, crashes, cuts int) {
	r.t.Helper()
	seed := rand.Uint64()
	r.t.Logf("%d jobs, %d kills, %d crashes, %d cuts, seed %d", len(r.jobs), kills, crashes, cuts, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	deals := slices.Concat(
		slices.Repeat([]func(host, int){r.kill}, kills),
		slices.Repeat([]func(host, int){r.crash}, crashes),
		slices.Repeat([]func(host, int){r.cut}, cuts),
	)
	rng.Shuffle(len(deals), func(i, j int) { deals[i], deals[j] = deals[j], deals[i] })
	share := len(r.jobs) / (len(deals) + 1)
	for n, deal := range deals {
		r.await(n*share + 1)
		h := hosts()[rng.IntN(len(hosts()))]
		r.struck[r.workers[h].name]++
		deal(h, (n+1)*share)
	}
}

// All hosts get the same jobs of "run --once", and each job runs once. Barriers that wait before
// any of the jobs exists open on all hosts, and none opens before the last job has ended.
// Rule: I1, I7, members
func TestRunOnceOnEveryHost(t *testing.T) {
	needCommand(t)
	r := newTrial(t, jobsAtLength(10, 100), 1)
	list := r.file("members", strings.Join(r.jobs, "\n")+"\n")
	var barriers, hands sync.WaitGroup
	for _, h := range hosts() {
		barriers.Go(func() { r.endsLast(r.shell(h, `"$0" -d "$1" wait --members-from `+list)) })
	}
	for _, h := range hosts() {
		hands.Go(func() { r.endsLast(r.shell(h, onceLoop, list, r.witness.shell(":"))) })
	}
	hands.Wait()
	barriers.Wait()
	require.Empty(t, r.faults())
	require.Equal(t, len(r.jobs), r.witness.read(t).runs())
}

// onceLoop takes the command, the base directory, the file of names and the job.
const onceLoop = `while read -r name; do "$0" -d "$1" run -q -n "$name" --once --wait forever -- sh -c "$3" || exit; done <"$2"`

// jobsAtLength returns the number of jobs, or rounds, for a short or a long run.
func jobsAtLength(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

// file creates a file that all hosts see and that is not on the share.
func (r *trial) file(name, content string) string {
	r.t.Helper()
	path := filepath.Join(filepath.Dir(r.witness.path), name)
	require.NoError(r.t, os.WriteFile(path, []byte(content), 0o666))
	return path
}

// shell prepares a script on a host, with the command as $0 and the base directory as $1.
func (r *trial) shell(h host, script string, args ...string) *exec.Cmd {
	cmd := exec.Command("on", append([]string{h.name, "sh", "-c", script, command, r.on(h)}, args...)...)
	cmd.Env = append(os.Environ(), workerVariable+"="+h.name)
	return cmd
}

// endsLast runs a program that must succeed, and must not end before every job has ended.
func (r *trial) endsLast(cmd *exec.Cmd) {
	r.succeeds(cmd)
	a := r.witness.read(r.t)
	for _, name := range r.jobs {
		if j := a[name]; j == nil || !j.runs[len(j.runs)-1].ended {
			r.t.Errorf("%s ended before %s had", cmd, name)
			return
		}
	}
}

func (r *trial) succeeds(cmd *exec.Cmd) {
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v: %s", cmd, err, out)
	}
}
