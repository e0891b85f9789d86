package fslock_test

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

var update = flag.Bool("update", false, "rewrite the golden traces in testdata")

// Each golden trace is the list of file operations that one step of the protocol
// makes. On a network file system each line is a request to the server, or
// nearly so: whoever adds one has to add it here, where a reviewer sees it.
// "shared" is a file system that other kernels use as well, "local" is not.
func TestGoldenTraces(t *testing.T) {
	for _, local := range []bool{false, true} {
		kind := vfs.FileSystem{Type: "test", Local: local, NFS: !local, Ordered: local}
		folder := map[bool]string{false: "shared", true: "local"}[local]
		for name, record := range episodes() {
			t.Run(folder+"/"+name, func(t *testing.T) {
				got := traceOf(t, kind, record)
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

// traceOf plays an episode. A reading of the server's clock is good for two
// seconds: a run that took longer than one, on a machine that is busy, is no sample.
func traceOf(t *testing.T, kind vfs.FileSystem, record func(*testing.T, *recorder)) string {
	t.Helper()
	for range 100 {
		r := newRecorder(t, kind)
		start := boottime.Now()
		record(t, r)
		if start.Elapsed() < time.Second {
			return nameless(r.trace.String())
		}
	}
	t.Fatal("the machine is too busy")
	return ""
}

// nameless takes out what is another each day, and on each host and filesystem.
func nameless(trace string) string {
	trace = regexp.MustCompile(`\d{4}-\d\d-\d\d`).ReplaceAllString(trace, "<day>")
	return regexp.MustCompile(`fs-[^ ]+-[0-9a-f]{12}\.`).ReplaceAllString(trace, "fs-<mount>.")
}

// recorder is the stage of an episode.
type recorder struct {
	base   string
	self   process.Identity
	faulty *faultfs.FS
	src    *fslock.Source // what is recorded
	rival  *fslock.Source // the same place, seen by somebody who is not
	trace  strings.Builder
}

func newRecorder(t *testing.T, kind vfs.FileSystem) *recorder {
	t.Helper()
	r := &recorder{base: t.TempDir(), self: self(t), faulty: faultfs.New(vfs.OS{}, nil)}
	r.self.Host, r.self.Boot = "here", "00000000-0000-0000-0000-000000000000"
	r.faulty.Describe(kind)
	quiet := faultfs.New(vfs.OS{}, nil)
	quiet.Describe(kind)
	r.src = open(t, fslock.Options{Base: r.base, FS: r.faulty, Self: r.self})
	r.rival = open(t, fslock.Options{Base: r.base, FS: quiet, Self: r.self})
	return r
}

// legacy puts a source in place that contends with Python peers.
func (r *recorder) legacy(t *testing.T) {
	r.src = open(t, fslock.Options{Base: r.base, FS: r.faulty, Self: r.self, LegacyPeers: true})
}

// warm makes the first use of the base directory, which is an episode by itself.
func (r *recorder) warm(t *testing.T) {
	release(t, contendAndTry(t, r.src, "warm", longClaim()))
}

// record adds the operations of f to the trace.
func (r *recorder) record(f func()) {
	r.faulty.Inject(faultfs.Trace(&r.trace))
	f()
	r.faulty.Inject(nil)
}

func longClaim() source.Claim { return source.Claim{TTL: long, Heartbeat: long / 10} }

func contend(t *testing.T, src *fslock.Source, name string, claim source.Claim) source.Contender {
	t.Helper()
	c, err := src.Contend(t.Context(), name, claim, source.Patience{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func try(t *testing.T, c source.Contender) source.Lease {
	t.Helper()
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Close() })
	return lease
}

func refuse(t *testing.T, c source.Contender) {
	t.Helper()
	_, err := c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
}

func contendAndTry(t *testing.T, src *fslock.Source, name string, claim source.Claim) source.Lease {
	t.Helper()
	c := contend(t, src, name, claim)
	lease := try(t, c)
	closed(t, c)
	return lease
}

func release(t *testing.T, lease source.Lease) {
	t.Helper()
	require.NoError(t, lease.Release(t.Context()))
}

func closed(t *testing.T, c io.Closer) {
	t.Helper()
	require.NoError(t, c.Close())
}

// someJob is a process group that cannot exist.
func someJob(self process.Identity) process.Group {
	return process.Group{Boot: self.Boot, Namespace: self.Namespace, PGID: 1 << 30, Start: 1}
}

// theDead is a process of this host that has ended: its number is this one's.
func theDead(self process.Identity) process.Identity {
	self.Start--
	return self
}

// abandonedBy is the claim of a process that is dead.
func abandonedBy(dead process.Identity) source.Claim {
	claim := longClaim()
	claim.Holder.Identity = dead
	return claim
}

// emptyDirectory is what a crash in the middle of a release leaves.
func emptyDirectory(t *testing.T, base, name string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(base, fslock.DefaultGroup, name), 0o777))
}
