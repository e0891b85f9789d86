package shareddir

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// A breaker removes the lock that it has judged through a descriptor of its directory, so
// that it can never be the next holder's. Some clients ask for what is open by the path that
// it had: what another host puts in its place is removed then. integration/filesystems shows
// it of those below FUSE. Changes that go through the same mount are seen, so one host may
// use such a file system. On several, it is refused.

// HiddenPrefix is how libfuse begins the name of a file that was removed while it was open:
// to one that goes by paths, it has to have a name.
const HiddenPrefix = ".fuse_hidden"

// hidingDir is where the filesystem's test tries that.
const hidingDir = "hiding"

// pathNamed are the types that go by paths, and do not show it.
func (m mount) pathNamed() bool {
	return slices.Contains([]string{"cifs", "smb3"}, m.kind)
}

// findsByPath says whether what is open is found by its path.
func (b *Base) findsByPath(dir vfs.Dir) (bool, error) {
	if b.Kind.Local || b.Kind.NFS {
		return false, nil
	}
	if m, err := mountOf(b.Dir); err == nil && m.pathNamed() {
		return true, nil
	}
	if err := dir.Mkdir(hidingDir, DirMode); err != nil {
		return false, err
	}
	hiding, err := dir.OpenDir(hidingDir)
	if err != nil {
		return false, err
	}
	defer hiding.Close() //nolint:errcheck // a directory
	found, err := hides(hiding)
	for range Rounds() { // the last user's close may not have got through yet
		if !vfs.NotEmpty(dir.Rmdir(hidingDir)) {
			break
		}
	}
	return found, err
}

// hides says whether a file that is removed while it is open stays under another name.
func hides(dir vfs.Dir) (bool, error) {
	f, err := dir.Create(TestFile, FileMode)
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // nothing is in it
	if err := dir.Unlink(TestFile); err != nil {
		return false, err
	}
	names, err := Names(dir.List, func(name string) bool { return strings.HasPrefix(name, HiddenPrefix) })
	return len(names) > 0, err
}

// alone refuses a file system that goes by paths if there is a mark of another host, or of
// another mount. Each makes its mark before it looks, so that of two who begin at the same
// time one finds the other's.
func (b *Base) alone() error {
	private, err := b.Private.Use()
	if err != nil {
		return b.StagingError(err)
	}
	defer b.Private.Done(private)
	own := b.markName()
	others, err := Names(private.List, func(entry string) bool {
		return strings.HasPrefix(entry, markPrefix) && !own.sameplace(entry)
	})
	if err != nil {
		return opError("look for other hosts", err)
	}
	if len(others) == 0 {
		return nil
	}
	return &source.InvalidError{
		What: "base directory", Got: b.Path(),
		Why: fmt.Sprintf("its filesystem (type %s) finds open files by their path, so it is safe for one mount on one host only, and another mount or host has used it: see multilock help filesystems; if that one no longer uses it, remove the empty directory %s/%s",
			b.typeName(), private.Path(), others[0]),
	}
}

// requireKind refuses the types of which it is known that no lock is safe there, whatever
// the test would find.
func (b *Base) requireKind() error {
	if b.Kind.Local || b.Kind.NFS {
		return nil
	}
	const moosePrefix = "mfs#" // its type is plain fuse
	m, _ := mountOf(b.Dir)     // unknown, it is judged by the test
	if strings.HasPrefix(m.from, moosePrefix) {
		return b.unfit("a holder notices when another host breaks its lock", errMooseFS)
	}
	switch m.kind {
	case "9p":
		return b.unfit("an open file stays the same file when another host replaces it", errNineP)
	case "fuse.sshfs":
		return b.unfit("an open file stays the same file when another host replaces it", errSFTP)
	case "fuse.mergerfs":
		return b.unfit("a directory can be moved from one directory to another", errBranches)
	case "fuse.glusterfs":
		return b.unfit("each acquisition gets its own fencing token", errGluster)
	case "fuse.encfs":
		return b.unfit("a renamed file is found at its new path at once", errEncFS)
	}
	return nil
}

// requireCase refuses where two names may be one: then two jobs have one result, and one of them never runs. FAT does that,
// servers of SMB and some of NFS, and directories of ext4 and ZFS that were told to. (All disks of macOS do, too, unless one says
// otherwise, and people there know it.)
func (b *Base) requireCase(dir vfs.Dir) error {
	if runtime.GOOS == "darwin" && b.Kind.Local {
		return nil
	}
	switch _, err := dir.StatName("FULL"); {
	case err == nil:
		return b.unfit("two names are two locks", errCase)
	case vfs.Gone(err):
		return nil
	default:
		return opError("test the filesystem", err)
	}
}

var (
	errCase     = errors.New("names that differ only in case are one name there; use a directory on another filesystem (-d), or make the server case sensitive (Samba: case sensitive = yes)")
	errSFTP     = errors.New("SFTP finds open files by their path, and sshfs caches answers; mount the directory with NFS, or run multilock on the host that has it")
	errNineP    = errors.New("9p servers find open files by their path, so that a holder does not notice that its lock is gone; mount the directory with NFS, or run multilock on the host that has it")
	errBranches = errors.New("mergerfs cannot if they are on different branches (EXDEV), and it chooses the branches; use a directory of one branch (-d)")
	errGluster  = errors.New("while servers of a GlusterFS volume fail, tokens repeat and decrease, and a holder may not notice that its lock is gone; use a directory on another filesystem (-d)")
	errMooseFS  = errors.New("with MooseFS a holder can release a lock that is no longer its own, without an error; use a directory on another filesystem (-d)")
	errEncFS    = errors.New("encfs shows the old file, so that a waiter can hang for ever; use gocryptfs")
)
