package filesystems_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// assessment is what docs/internals/filesystems.md states about a filesystem.
type assessment struct {
	// oneHost means that no other host can see it, which doctor warns about.
	oneHost bool
	// oneMount means that locks are safe only on one mount of one host. refused means that they are
	// safe nowhere; it is a part of the error message.
	oneMount bool
	refused  string
	// byPath means that an open directory is looked up by its path, so that a directory that
	// another host puts in its place replaces the open one, too.
	byPath bool
	// notices means that inotify reports changes made through the other mount, seconds that times
	// are whole seconds.
	notices, seconds bool
	// deaf means that inotify does not even report changes made through the same mount.
	deaf bool
	// impossible are names that no lock can have there.
	impossible []string
}

func assessments() map[string]assessment {
	local := assessment{oneHost: true, notices: true}
	fat := assessment{oneHost: true, notices: true, seconds: true, refused: oneCase}
	sftp := assessment{refused: "SFTP finds open files by their path", byPath: true, seconds: true}
	return map[string]assessment{
		"tmpfs": local, "ext4": local, "xfs": local, "btrfs": local, "overlay": local, "gocryptfs": {},
		"fuse-overlayfs": {oneHost: true, notices: true, impossible: []string{strings.Repeat("\u20ac", 82)}},
		"exfat-fuse":     fat,
		"moosefs":        {refused: "MooseFS a holder can release a lock that is no longer its own", seconds: true}, "ceph": {},
		"gluster":  {refused: "while servers of a GlusterFS volume fail, tokens repeat"},
		"bindfs":   {oneMount: true, byPath: true},
		"unionfs":  {oneMount: true, byPath: true},
		"encfs":    {refused: "encfs shows the old file", byPath: true},
		"cryfs":    {refused: "a rename onto a directory that is not empty fails and changes nothing"},
		"mergerfs": {refused: "mergerfs cannot if they are on different branches"},
		"ganesha":  {}, "ganesha-4.1": {}, "ganesha-4.0": {}, "ganesha-3": {},
		"smb":      {refused: oneCase, byPath: true},
		"smb-case": smb(), "smb-nobrl": smb(),
		"vfat": fat, "9p": {refused: "9p servers find open files by their path", byPath: true, deaf: true}, "reexport": {},
		"sshfs": sftp, "sshfs-rename": sftp,
	}
}

const oneCase = "differ only in case are one name"

// smb is a share whose server distinguishes upper and lower case.
func smb() assessment {
	return assessment{oneMount: true, byPath: true, impossible: []string{`back\slash`, "\xff\xfe not utf-8"}}
}

const oneMountOnly = "safe for one mount on one host only"

// mounted returns what scripts/lab has mounted: the assessment, and the two mounts.
func mounted(t *testing.T) (v assessment, mounts []string) {
	t.Helper()
	name := os.Getenv("MULTILOCK_FILESYSTEM")
	if name == "" {
		t.Skip("scripts/lab mounts the filesystems that are tried here")
	}
	v, known := assessments()[name]
	require.True(t, known, "no assessment on %s", name)
	return v, strings.Split(os.Getenv("MULTILOCK_MOUNTS"), ":")
}

// place creates a base directory, and returns its path on each of the mounts.
func place(t *testing.T, mounts []string) (bases []string) {
	t.Helper()
	first, err := os.MkdirTemp(mounts[0], "place-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(first, 0o755))
	for _, m := range mounts {
		bases = append(bases, filepath.Join(m, filepath.Base(first)))
	}
	return bases
}

// try acquires a lock and releases it.
func try(t *testing.T, base string) error {
	t.Helper()
	src := fslocktest.Open(t, fslock.Options{Base: base})
	lock, err := multilock.TryAcquire(t.Context(), src, "lock", multilock.Options{})
	if err == nil {
		err = lock.Release(t.Context())
	}
	return err
}

// Where locks are safe, a lock can be acquired, and elsewhere none can.
func TestAssessment(t *testing.T) {
	v, mounts := mounted(t)
	bases := place(t, mounts)
	switch {
	case v.refused != "":
		err := try(t, bases[0])
		require.ErrorIs(t, err, source.ErrInvalid)
		require.ErrorContains(t, err, v.refused)
		require.ErrorContains(t, err, "multilock help filesystems")
	case v.oneMount:
		require.NoError(t, try(t, bases[0]))
		for _, base := range []string{bases[1], bases[0], bases[1]} {
			err := try(t, base)
			require.ErrorIs(t, err, source.ErrInvalid)
			require.ErrorContains(t, err, oneMountOnly)
		}
	default:
		require.NoError(t, try(t, bases[0]))
		require.NoError(t, try(t, bases[1]))
	}
}

// The findings of doctor agree with the assessment.
func TestFindings(t *testing.T) {
	v, mounts := mounted(t)
	src := fslocktest.Open(t, fslock.Options{Base: place(t, mounts)[0]})
	worst := source.SeverityFine
	var said strings.Builder
	for _, f := range src.Examine(t.Context()) {
		if f.Subject == "rules" {
			worst = f.Severity
		}
		said.WriteString(f.Text + f.Advice + "\n")
	}
	require.Equal(t, v.oneHost, strings.Contains(said.String(), ") is local: other hosts do not see its locks"), said.String())
	switch {
	case v.refused != "":
		require.Equal(t, source.SeverityUnusable, worst)
		require.Contains(t, said.String(), v.refused)
	case v.oneMount:
		require.Equal(t, source.SeverityWarning, worst)
		require.Contains(t, said.String(), oneMountOnly)
	default:
		require.Equal(t, source.SeverityFine, worst, said.String())
	}
}

// Shows why some filesystems are refused: a file that another host has put in place of an earlier
// one is removed through a directory that was opened before.
func TestWhatIsOpenStaysWhatItIs(t *testing.T) {
	v, mounts := mounted(t)
	bases := place(t, mounts)
	if v.refused != "" && !v.byPath {
		t.Skip("refused for another reason")
	}
	attempts := 1
	if v.byPath {
		attempts = 5 // on SMB, a writer may still have its file open for some time, which keeps it
	}
	hit := false
	for n := 0; n < attempts && !hit; n++ {
		hit = hitsTheNext(t, bases, fmt.Sprintf("lock-%d", n), time.Duration(n)*time.Second)
	}
	require.Equal(t, v.byPath, hit, "whether the other host's file was removed")
}

// hitsTheNext reports whether a removal through an open directory removes a file in a new
// directory, which another host has put in its place some time before.
func hitsTheNext(t *testing.T, bases []string, name string, while time.Duration) bool {
	t.Helper()
	lock := func(base string) string { return filepath.Join(base, name) }
	require.NoError(t, os.Mkdir(lock(bases[0]), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(lock(bases[0]), "file"), nil, 0o644))
	open, err := os.OpenRoot(lock(bases[0]))
	require.NoError(t, err)
	defer open.Close()

	require.NoError(t, os.Rename(lock(bases[1]), filepath.Join(bases[1], "old-"+name)))
	require.NoError(t, os.Mkdir(lock(bases[1]), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(lock(bases[1]), "file"), nil, 0o644))
	time.Sleep(while)
	require.NoError(t, open.Remove("file"))
	time.Sleep(2 * time.Second) // FUSE caches names for a second
	_, err = os.Stat(filepath.Join(lock(bases[1]), "file"))
	return os.IsNotExist(err)
}

// conformanceTTL is short: on filesystems where hosts set the times of their files, the death of a
// holder takes the whole TTL to establish.
const conformanceTTL = 2 * time.Second

// Runs the suite that every lock source must pass. Each opened source uses the next mount, where
// that is safe.
func TestConformance(t *testing.T) {
	v, mounts := mounted(t)
	if v.refused != "" || testing.Short() {
		t.Skip("locks are refused there, or this is a short run")
	}
	if v.oneMount {
		mounts = mounts[:1]
	}
	f := fslocktest.Fixture(func(t testing.TB) func() fslock.Options {
		bases := place(t.(*testing.T), mounts)
		var opened atomic.Int64
		return func() fslock.Options {
			return fslock.Options{Base: bases[opened.Add(1)%int64(len(bases))]}
		}
	})
	f.TTL, f.Impossible = conformanceTTL, v.impossible
	if v.seconds {
		f.TTL, f.Step = 10*time.Second, 1100*time.Millisecond
	}
	locktest.Run(t, f)
}
