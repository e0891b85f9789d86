package fslock_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

var update = flag.Bool("update", false, "rewrite the golden traces in testdata")

// Each golden trace is the list of file operations that one step of the protocol makes. On a network
// filesystem each line is a request to the server, or nearly so: a change that adds one has to add it here,
// where a reviewer sees it. "shared" is a filesystem that other kernels use as well, "local" is not.
// Rule: calls
func TestGoldenTraces(t *testing.T) {
	for _, local := range []bool{false, true} {
		folder := map[bool]string{false: "shared", true: "local"}[local]
		for name, play := range episodes() {
			t.Run(folder+"/"+name, func(t *testing.T) {
				got := traceOf(t, vfs.FileSystem{Type: "test", Local: local, NFS: !local, Ordered: local}, name, play)
				requireGolden(t, filepath.Join("testdata", folder, name+".trace"), got)
			})
		}
	}
}

func requireGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "make it with -update")
	require.Equal(t, string(want), got, "the operations have changed; if they are meant to, run the test with -update and review the difference")
}

// traceOf plays an episode. A reading of the server's clock is valid for two seconds, so a run that took
// longer than one, on a busy machine, is repeated.
func traceOf(t *testing.T, kind vfs.FileSystem, name string, play episode) string {
	t.Helper()
	for range 100 {
		r := newRecorder(t, kind, strings.HasSuffix(name, "-legacy"))
		start := boottime.Now()
		if name != "first-use" {
			release(t, contendAndTry(t, r.src, "warm", longClaim()))
		}
		got := r.record(play(t, r))
		if start.Elapsed() < time.Second {
			return got
		}
	}
	t.Fatal("the machine is too busy")
	return ""
}

// nameless replaces what changes each day, and on each host and filesystem.
func nameless(trace string) string {
	trace = regexp.MustCompile(`\d{4}-\d\d-\d\d`).ReplaceAllString(trace, "<day>")
	return regexp.MustCompile(`fs-[^ ]+-[0-9a-f]{12}\.`).ReplaceAllString(trace, "fs-<mount>.")
}

// recorder is the setup of an episode.
type recorder struct {
	base   string
	self   process.Identity
	faulty *faultfs.FS
	src    *fslock.Source // the recorded source
	rival  *fslock.Source // the same place, not recorded
}

func newRecorder(t *testing.T, kind vfs.FileSystem, legacy bool) *recorder {
	t.Helper()
	r := &recorder{base: t.TempDir(), self: self(t), faulty: faultfs.New(vfs.OS{}, nil)}
	r.self.Host, r.self.Boot = "here", "00000000-0000-0000-0000-000000000000"
	r.faulty.Describe(kind)
	quiet := faultfs.New(vfs.OS{}, nil)
	quiet.Describe(kind)
	r.src = open(t, fslock.Options{Base: r.base, FS: r.faulty, Self: r.self, LegacyPeers: legacy})
	r.rival = open(t, fslock.Options{Base: r.base, FS: quiet, Self: r.self})
	return r
}

// record returns the operations of a step.
func (r *recorder) record(step func()) string {
	var trace strings.Builder
	r.faulty.Inject(faultfs.Trace(&trace))
	step()
	r.faulty.Inject(nil)
	return nameless(trace.String())
}

// episode prepares a step of the protocol, and returns it: its file operations are recorded.
type episode func(*testing.T, *recorder) (step func())

// keeping holds a lock and uses it several times: the last use is the step.
func keeping(uses ...func(*testing.T, source.Lease)) episode {
	return func(t *testing.T, r *recorder) func() {
		lease, last := contendAndTry(t, r.src, "lock", jobClaim()), len(uses)-1
		for _, use := range uses[:last] {
			use(t, lease)
		}
		return func() { uses[last](t, lease) }
	}
}

// afterRefusal is what a waiter does after an attempt that found the lock held.
func afterRefusal(next func(*testing.T, source.Contender)) episode {
	return func(t *testing.T, r *recorder) func() {
		contendAndTry(t, r.rival, "lock", longClaim())
		c := contend(t, r.src, "lock", longClaim())
		refuse(t, c)
		return func() { next(t, c) }
	}
}

// watching is a look at a lock that another process holds, after before.
func watching(claim source.Claim, before func(*testing.T, source.Observer, source.Lease)) episode {
	return func(t *testing.T, r *recorder) func() {
		lease := contendAndTry(t, r.rival, "lock", claim)
		o := observe(t, r.src, "lock", source.StalePolicy{})
		before(t, o, lease)
		return func() { require.Equal(t, source.StateHeld, look(t, o).State) }
	}
}

// asking is a read from the source after the rival has changed something.
func asking(before func(*testing.T, *recorder), ask func(*testing.T, *fslock.Source)) episode {
	return func(t *testing.T, r *recorder) func() {
		before(t, r)
		return func() { ask(t, r.src) }
	}
}

func nothing(*testing.T, *recorder) {}

func theirs(t *testing.T, r *recorder) { contendAndTry(t, r.rival, "lock", longClaim()) }

// crashed leaves what a crash between the two removals of a release leaves.
func crashed(t *testing.T, r *recorder) { emptyDirectory(t, r.base, "lock") }

// queued joins and leaves a queue, so that a second time shows the cost in a used queue.
func queued(t *testing.T, r *recorder) { inLine(t, r.src) }

func inLine(t *testing.T, src *fslock.Source) {
	place, err := multilock.Enqueue(t.Context(), src, "lock", multilock.Options{TTL: long})
	require.NoError(t, err)
	place.Leave()
}

func committed(t *testing.T, r *recorder) {
	commit(t, contendAndTry(t, r.rival, "lock", longClaim()), 1)
}

func taking(t *testing.T, src *fslock.Source) { contendAndTry(t, src, "lock", longClaim()) }

func empty(want bool) func(*testing.T, *fslock.Source) {
	return func(t *testing.T, src *fslock.Source) { requireEmpty(t, src, want) }
}

// episodes are the steps of the protocol with golden traces. Each is on a base directory that was used
// before, except "first-use".
func episodes() map[string]episode {
	renew := func(t *testing.T, l source.Lease) { require.NoError(t, l.Renew(t.Context())) }
	mark := func(t *testing.T, l source.Lease) { require.NoError(t, l.MarkJob(t.Context(), someJob(self(t)))) }
	markAgain := func(t *testing.T, l source.Lease) {
		require.NoError(t, l.MarkJob(t.Context(), someJob(self(t)), someJob(self(t))))
	}
	draw := func(t *testing.T, l source.Lease) { fence(t, l) }
	record := func(t *testing.T, l source.Lease) { commit(t, l, 1) }
	learn := func(t *testing.T, l source.Lease) { outcome(t, l, nil) }
	miss := func(t *testing.T, l source.Lease) { outcome(t, l, source.ErrNoResult) }
	forget := func(t *testing.T, l source.Lease) { require.NoError(t, committer(l).Forget(t.Context())) }
	return map[string]episode{
		"first-use":          asking(nothing, taking),
		"acquire":            asking(nothing, taking),
		"acquire-legacy":     asking(nothing, taking),
		"acquire-after-wait": acquireAfterWait,
		"acquire-empty":      asking(crashed, taking),
		"refused":            asking(theirs, func(t *testing.T, src *fslock.Source) { refuse(t, contend(t, src, "lock", longClaim())) }),
		// A waiter's further attempt is a single request, however long it waits.
		"refused-again": afterRefusal(refuse),
		"give-up":       afterRefusal(func(t *testing.T, c source.Contender) { closed(t, c) }),
		"heartbeat":     keeping(renew),
		// From the second on, a heartbeat is two requests on NFS: statcached sends none.
		"heartbeat-again":  keeping(renew, renew),
		"release":          keeping(release),
		"release-with-job": keeping(mark, release),
		"mark-job":         keeping(mark),
		"mark-jobs":        keeping(mark, markAgain),
		"fence":            keeping(draw),
		"fence-again":      keeping(draw, draw),
		"commit":           keeping(miss, record),
		"commit-again":     keeping(record, record), // the second result replaces the first
		"outcome-first":    keeping(miss),
		"outcome-none":     keeping(miss, miss),
		"outcome":          keeping(record, learn),
		"forget":           keeping(record, forget),
		"look-free": asking(nothing, func(t *testing.T, src *fslock.Source) {
			require.Equal(t, source.StateFree, look(t, observe(t, src, "lock", source.StalePolicy{})).State)
		}),
		"look":       watching(longClaim(), func(*testing.T, source.Observer, source.Lease) {}),
		"look-again": watching(longClaim(), func(t *testing.T, o source.Observer, _ source.Lease) { look(t, o) }),
		"look-after-a-change": watching(jobClaim(), func(t *testing.T, o source.Observer, l source.Lease) {
			look(t, o)
			mark(t, l)
		}),
		"break": breakTheDead,
		"sweep": asking(func(t *testing.T, r *recorder) {
			_, err := r.rival.Contend(t.Context(), "lock", abandonedBy(theDead(r.self)), source.StalePolicy{})
			require.NoError(t, err)
		}, func(t *testing.T, src *fslock.Source) {
			swept, err := src.Sweep(t.Context())
			require.NoError(t, err)
			require.Len(t, swept, 1)
		}),
		"history": asking(nothing, func(t *testing.T, src *fslock.Source) {
			require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "lock")))
		}),
		"names": asking(theirs, func(t *testing.T, src *fslock.Source) {
			names, err := src.Names(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"lock"}, names)
		}),
		"queue": asking(queued, inLine),
		// A waiter in the queue makes one request per poll, as long as nothing changes.
		"queue-again": func(t *testing.T, r *recorder) func() {
			place, err := multilock.Enqueue(t.Context(), r.rival, "lock", multilock.Options{TTL: long})
			require.NoError(t, err)
			t.Cleanup(place.Leave)
			queue, err := r.src.Queue("lock")
			require.NoError(t, err)
			t.Cleanup(func() { _ = queue.Close() })
			look := func() {
				_, err := queue.Names(t.Context())
				require.NoError(t, err)
			}
			look()
			return look
		},
		"empty": asking(nothing, empty(true)),
		// An answer that there is no group may come from a cache.
		"empty-again": asking(func(t *testing.T, r *recorder) { requireEmpty(t, r.src, true) }, empty(true)),
		// A barrier's poll is one request, whatever the size of the group. So is a poll for results.
		"empty-held": asking(func(t *testing.T, r *recorder) {
			for _, name := range []string{"a", "b", "c"} {
				contendAndTry(t, r.rival, name, longClaim())
			}
		}, empty(false)),
		"tidy": asking(crashed, func(t *testing.T, src *fslock.Source) { require.NoError(t, src.Tidy(t.Context(), "lock")) }),
		"revision": asking(func(t *testing.T, r *recorder) {
			committed(t, r)
			revision(t, r.src)
		}, func(t *testing.T, src *fslock.Source) { revision(t, src) }),
		"result": asking(committed, func(t *testing.T, src *fslock.Source) {
			result, err := src.Result(t.Context(), "lock")
			require.NoError(t, err)
			require.True(t, result.OK())
		}),
		"results": asking(committed, func(t *testing.T, src *fslock.Source) {
			names, err := src.Results(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"lock"}, names)
		}),
	}
}

// The time that a staged directory got when it was made counts as a heartbeat for half a heartbeat interval
// only: later the contender sends one before it relies on the lock.
func acquireAfterWait(t *testing.T, r *recorder) (step func()) {
	holder := contendAndTry(t, r.rival, "lock", longClaim())
	const beat = 2 * time.Millisecond
	c := contend(t, r.src, "lock", source.Claim{TTL: long, Heartbeat: beat})
	refuse(t, c)
	release(t, holder)
	time.Sleep(beat)
	return func() { try(t, c) }
}

func breakTheDead(t *testing.T, r *recorder) (step func()) {
	contendAndTry(t, r.rival, "lock", abandonedBy(theDead(r.self)))
	o := observe(t, r.src, "lock", source.StalePolicy{})
	require.Equal(t, source.StateDead, look(t, o).State)
	return func() { require.NoError(t, o.Break(t.Context())) }
}
