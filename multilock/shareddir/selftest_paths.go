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
		Why: fmt.Sprintf("its filesystem (type %s) finds what is open by its path, so it is safe for one mount on one host only, and it has been used from elsewhere, too: see multilock help filesystems; if nobody uses it from there any more, remove the empty directory %s/%s",
			b.typeName(), private.Path(), others[0]),
	}
}

// requireKind refuses the types of which it is known that no lock is safe there, whatever
// the test would find.
func (b *Base) requireKind() error {
	if b.Kind.Local || b.Kind.NFS {
		return nil
	}
	m, _ := mountOf(b.Dir) // unknown, it is judged by the test
	if strings.HasPrefix(m.from, moosePrefix) {
		return b.unfit("whose lock another host has broken learns of it", errMooseFS)
	}
	switch m.kind {
	case "9p":
		return b.unfit("what is open stays what it is, whatever another host puts in its place", errNineP)
	case "fuse.sshfs":
		return b.unfit("what is open stays what it is, whatever another host puts in its place", errSFTP)
	case "fuse.mergerfs":
		return b.unfit("a directory can be moved from one directory to another", errBranches)
	case "fuse.glusterfs":
		return b.unfit("each lock has a fencing number of its own", errGluster)
	case "fuse.encfs":
		return b.unfit("what was renamed is found at once where it is now", errEncFS)
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
		return b.unfit("two names are two locks, and have two results", errCase)
	case vfs.Gone(err):
		return nil
	default:
		return opError("test the filesystem", err)
	}
}

var (
	errCase     = errors.New("names that differ in upper and lower case alone are one there; choose a directory on another filesystem with -d, or have the server tell them apart (Samba: case sensitive = yes)")
	errSFTP     = errors.New("SFTP asks for everything by its path, and sshfs answers from a cache; mount the directory by NFS, or run multilock on the host that has it")
	errNineP    = errors.New("servers of 9p ask for everything by its path, so that a holder does not learn that his lock is gone; mount the directory by NFS, or run multilock on the host that has it")
	errBranches = errors.New("mergerfs cannot where they are on different branches (EXDEV), and chooses those by itself; give a directory of one branch with -d")
	errGluster  = errors.New("while servers of a GlusterFS volume fail, numbers repeat and go back, and a holder may not see that his lock is gone; choose a directory on another filesystem with -d")
	errMooseFS  = errors.New("with MooseFS a holder gives back what is not his any more, and is told that all is well; choose a directory on another filesystem with -d")
	errEncFS    = errors.New("encfs shows what was there before, so that somebody waits for ever; gocryptfs can be used")
)
