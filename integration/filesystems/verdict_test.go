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

// assessment is what docs/internals/filesystems.md says of a filesystem.
type assessment struct {
	// oneHost says that no other host can see it, which doctor warns of.
	oneHost bool
	// oneMount says that locks are safe on one mount of one host alone, refused that they
	// are on none; the text is what people are told then.
	oneMount bool
	refused  string
	// byPath says that an open directory is found by its path, so that what another host
	// puts in its place is in its place here, too.
	byPath bool
	// notices says that inotify tells of what is done through the other mount, seconds that
	// times are whole ones.
	notices, seconds bool
	// deaf says that it does not even tell of what is done through the same one.
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

// smb is a share whose server tells upper and lower case apart.
func smb() assessment {
	return assessment{oneMount: true, byPath: true, impossible: []string{`back\slash`, "\xff\xfe not utf-8"}}
}

const oneMountOnly = "safe for one mount on one host only"

// mounted is what scripts/lab has mounted: the assessment, and the two mounts.
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

// place makes a base directory, as each of the mounts shows it.
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

// try takes a lock and gives it back.
func try(t *testing.T, base string) error {
	t.Helper()
	src := fslocktest.Open(t, fslock.Options{Base: base})
	lock, err := multilock.TryAcquire(t.Context(), src, "lock", multilock.Options{})
	if err == nil {
		err = lock.Release(t.Context())
	}
	return err
}

// Where locks are safe there is one, and where they are not nobody gets one.
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

// What doctor says is what happens.
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

// Why those are refused that are: a file is removed through a directory that was opened
// before another host put a new one in its place.
func TestWhatIsOpenStaysWhatItIs(t *testing.T) {
	v, mounts := mounted(t)
	bases := place(t, mounts)
	if v.refused != "" && !v.byPath {
		t.Skip("it is refused for another reason")
	}
	attempts := 1
	if v.byPath {
		attempts = 5 // who has just written a file may still have it open, which keeps it on SMB
	}
	hit := false
	for n := 0; n < attempts && !hit; n++ {
		hit = hitsTheNext(t, bases, fmt.Sprintf("lock-%d", n), time.Duration(n)*time.Second)
	}
	require.Equal(t, v.byPath, hit, "whether the other host's file is gone")
}

// hitsTheNext says whether a file is removed that another host has put, a while ago, in the place of one that was there
// before.
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
	time.Sleep(2 * time.Second) // FUSE keeps names for a second
	_, err = os.Stat(filepath.Join(lock(bases[1]), "file"))
	return os.IsNotExist(err)
}

// conformanceTTL is short: where hosts may date what they write, a dead holder is watched
// for all of it.
const conformanceTTL = 2 * time.Second

// The suite that every source of locks passes: each source that is opened goes through
// another mount, where that is safe.
func TestConformance(t *testing.T) {
	v, mounts := mounted(t)
	if v.refused != "" || testing.Short() {
		t.Skip("nobody gets a lock there, or the short form was asked for")
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
