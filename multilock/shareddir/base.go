// Package shareddir is the one door to a directory that hosts share: no lock is looked
// for, taken or cleared on another way.
//
// A [Base] is such a directory, held by a descriptor, with what must be known of it
// before anything in it is relied on: what kind of filesystem it is on and how it is
// mounted, whether that keeps the rules that locks need ([Base.Traits]), what its
// server's clock says ([Base.Now]), and whether the way by which others come to it still
// leads there ([Base.Moved]).
//
// Below it multilock keeps its own files in .multilock, and prepares in
// .multilock/staging what is to be renamed into place. A [Dir] is a directory that
// several goroutines use, and that is opened anew when it was replaced.
package shareddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Names in the base directory.
const (
	PrivateDir = ".multilock"
	StagingDir = "staging" // in PrivateDir

	ClockSuffix = ".clock"    // of what is made in staging to read the server's clock
	TestSuffix  = ".selftest" // and to test the filesystem
)

// What is made gets these modes, as far as others may write to the base directory, and
// as the umask leaves it. A file whose owner alone writes to it has FileMode.
const (
	DirMode    = 0o777
	FileMode   = 0o644
	AppendMode = 0o666
)

// Options say which directory it is.
type Options struct {
	// Path is the directory; it must exist.
	Path string
	// FS is the file system; the operating system's if nil.
	FS vfs.FS
	// Self is who the calling process is: each host tries its own mount.
	Self process.Identity
	// Clock is this host's own, for tests.
	Clock boottime.Clock
	// Trust says whom to believe. Where everybody may write, and only the owner of an
	// entry may remove it (/tmp), each user gets a directory of his own in this one,
	// unless everybody is trusted.
	Trust Trust
}

// Base is an open directory that hosts share.
type Base struct {
	vfs.Dir
	// Kind is what is known of its filesystem.
	Kind vfs.FileSystem
	// Private is .multilock, and Staging .multilock/staging. Using them makes them.
	Private, Staging *Dir
	// Notice is what the caller should be told once, "" if there is nothing.
	Notice string

	self   process.Identity
	circle *circle
	way    way
	clock  clock
	tested selfTest
}

// Open opens the base directory. It creates nothing: looking leaves no traces. The error is
// source.ErrInvalid if it is no directory, or may not be opened, or somebody may write to it
// who is not trusted.
func Open(opt Options) (*Base, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	dir, err := opt.FS.OpenDir(opt.Path)
	if err != nil {
		return nil, invalidBase(opt.Path, err)
	}
	b, err := newBase(opt, dir, false)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return b, nil
}

// newBase makes a base of an open directory. Own is the caller's own directory in one for
// everybody.
func newBase(opt Options, dir vfs.Dir, own bool) (*Base, error) {
	const failed = "look at the base directory"
	info, err := dir.StatCached()
	if err != nil {
		return nil, opError(failed, err)
	}
	if !own && isForEverybody(info) && !opt.Trust.Anybody {
		return openOwn(opt, dir, info)
	}
	kind, err := kindOf(dir, info)
	if err != nil {
		return nil, opError(failed, err)
	}
	b := &Base{Dir: dir, Kind: kind, self: opt.Self, way: newWay(opt.FS, opt.Path)}
	b.clock.Host = opt.Clock
	b.circle = newCircle(opt.Trust, info, b.way.ownerHere)
	if own {
		b.circle.declared = false // any user may have made it, for a group that both are in
	}
	if err := b.circle.admit(info, false); err != nil {
		return nil, b.circle.invalid(opt.Path, err)
	}
	dir.Guard(b.circle.rules(info))
	b.Private = NewDir(func(open Opener) (vfs.Dir, error) { return OpenDir(b, PrivateDir, open) })
	b.Staging = NewDir(func(open Opener) (vfs.Dir, error) { return b.Below(StagingDir, open) })
	return b, nil
}

// isForEverybody knows a directory like /tmp.
func isForEverybody(info vfs.Info) bool {
	return info.Mode&fs.ModeSticky != 0 && info.Mode&0o002 != 0
}

// openOwn opens the caller's own directory in one where everybody may make entries. The first
// lock makes it.
func openOwn(opt Options, shared vfs.Dir, info vfs.Info) (*Base, error) {
	name := fmt.Sprintf("%s-%d", PrivateDir, os.Geteuid())
	dir, err := shared.OpenDir(name)
	absent := vfs.Is(err, syscall.ENOENT)
	if absent {
		dir, err = newOwnDir(shared, name, id(os.Geteuid()), id(os.Getegid()), info), nil
	}
	if err != nil {
		return nil, invalidBase(filepath.Join(opt.Path, name), err)
	}
	common := opt.Path
	opt.Path, opt.Trust = dir.Path(), Trust{}
	b, err := newBase(opt, dir, true)
	if err != nil && !absent {
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		return nil, err
	}
	if absent {
		alone := ""
		if b.OneHost() != "" {
			alone = ", and no other host sees them"
		}
		b.Notice = fmt.Sprintf("all users can write to %s, so your locks and files are in %s, for you alone%s; "+
			"use a directory that you share with a group, or --trust any if all users are to share this one", common, dir.Path(), alone)
		return b, nil
	}
	return b, shared.Close()
}

func invalidBase(base string, err error) error {
	why := err.Error()
	switch {
	case vfs.Is(err, syscall.ENOENT):
		why = "does not exist; create it, on the filesystem that all hosts share"
	case vfs.Is(err, syscall.ENOTDIR):
		why = "is not a directory"
	case vfs.Is(err, syscall.EACCES, syscall.EPERM):
		why = "may not be opened by this user"
	}
	return &source.InvalidError{What: "base directory", Got: base, Why: why, Err: err}
}

// Close frees the descriptors that nobody uses any more.
func (b *Base) Close() error {
	b.Staging.Close()
	b.Private.Close()
	return b.Dir.Close()
}

// InodesCount says whether inode numbers can be relied on. Where they cannot (SMB, some
// of FUSE), they may change under an open file.
func (b *Base) InodesCount() bool { return b.Kind.Local || b.Kind.NFS }

// OnlyOurs reports whether only root and this user can have written what is accepted here.
func (b *Base) OnlyOurs() bool { return b.circle.onlyOurs() }

// Below opens the directory name of .multilock, made if absent.
func (b *Base) Below(name string, open Opener) (vfs.Dir, error) {
	private, err := b.Private.Use()
	if err != nil {
		return nil, err
	}
	defer b.Private.Done(private)
	dir, err := OpenDir(private, name, open)
	if vfs.Is(err, syscall.ESTALE) || (vfs.Gone(err) && !linked(private)) {
		b.Private.Drop(private)
	}
	return dir, err
}

// linked says whether an open directory still has a name.
func linked(dir vfs.Dir) bool {
	info, err := dir.Stat()
	return err == nil && info.Links > 0
}

// OpenDir opens the directory name, made if it is absent.
//
// Mkdir may answer that the name exists, made by another host, while this client still
// remembers it as absent. Then only the server's answer counts, which Afresh fetches. An
// answer of absence that was under way meanwhile can arrive even after that, so absence
// starts the step over.
func OpenDir(parent vfs.Dir, name string, open Opener) (dir vfs.Dir, err error) {
	for range Rounds() {
		dir, err = open(parent, name)
		if !vfs.Is(err, syscall.ENOENT) {
			return dir, err
		}
		if err := parent.Mkdir(name, DirMode); err != nil && !vfs.Is(err, syscall.EEXIST) {
			return nil, err
		}
		open = Afresh
	}
	return nil, err
}

// IsRegular tells a file from what somebody may have put in its place.
func IsRegular(info vfs.Info) bool { return info.Mode&fs.ModeType == 0 }

// way is that by which others come to the base directory.
type way struct {
	fs   vfs.FS
	path string // from the root directory, so that a chdir changes nothing; "" if that is not known
}

func newWay(fs vfs.FS, base string) way {
	path, err := filepath.Abs(base)
	if err != nil {
		path = "" // this process stands in a directory that has no path
	}
	return way{fs: fs, path: path}
}

// ownerHere opens the directory anew, without rules.
func (w way) ownerHere() (uint32, error) {
	dir, err := w.fs.OpenDir(w.path)
	if err != nil {
		return 0, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return ownerHere(dir)
}

// Moved says what was moved, if the way by which others come to the directory name of the
// base does not lead to dir, the one that is open. It is "" if all is well, or nobody can
// tell: what cannot be looked up proves nothing.
func (b *Base) Moved(dir vfs.Dir, name string) (what string) {
	if !b.InodesCount() || b.way.path == "" {
		return ""
	}
	base, err := b.way.fs.OpenDir(b.way.path)
	if leadsNowhere(err) {
		return "base directory"
	}
	if err != nil {
		return ""
	}
	defer base.Close() //nolint:errcheck // a directory
	info, err := base.Stat()
	opened, failed := b.StatCached()
	if err == nil && failed == nil && !info.Same(opened) {
		return "base directory"
	}
	named, err := base.StatName(name)
	if leadsNowhere(err) {
		return "lock group"
	}
	opened, failed = dir.StatCached()
	if err == nil && failed == nil && !named.Same(opened) {
		return "lock group"
	}
	return ""
}

// leadsNowhere says that a path does not lead to a directory any more.
func leadsNowhere(err error) bool { return vfs.Is(err, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP) }

// OpError names the step in which err came up, what to do about it, and whether to wait.
// The name is that of the lock that it was about, if any.
func OpError(op, name string, err error) error {
	return &source.OpError{Source: "fslock", Op: op, Name: name, Err: err, Hint: hint(err), Passing: vfs.Passing(err)}
}

func opError(op string, err error) error { return OpError(op, "", err) }

func hint(err error) string {
	if advice := adviceOn(err); advice != "" {
		return advice
	}
	switch {
	case vfs.Is(err, syscall.EXDEV):
		return "the base directory, its .multilock and the lock group must be on one filesystem (also not separated by a quota tree, a subvolume or a bind mount)"
	case vfs.Is(err, syscall.EACCES, syscall.EPERM):
		return "check the permissions; a lock directory that several users share belongs to a group that all of them are in, with mode 2775 and without the sticky bit"
	}
	return vfs.Hint(err)
}

// StagingError says why .multilock/staging cannot be used.
func (b *Base) StagingError(err error) error {
	if vfs.Is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return &source.InvalidError{What: "base directory", Got: b.Path(), Why: "has something called .multilock that is not multilock's own directory; move it away", Err: err}
	}
	return opError("prepare .multilock/staging in the base directory", err)
}
