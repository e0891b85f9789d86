// Package vfs is the seam between the lock protocol and the file system: the
// few calls that the protocol makes, each of them one system call wherever the
// system allows, on directory descriptors instead of paths.
//
// Descriptors matter. After ESTALE the Linux kernel walks a path again by itself
// and may then act on another lock than the one that was judged; a call through a
// descriptor reaches that one directory or nothing (path_resolution(7), and
// fs/namei.c, retry_estale).
//
// The package adds nothing to what the kernel says: no retries of calls that
// change something, no checks before them. Package faultfs wraps it in tests.
package vfs

import (
	"io/fs"
	"time"
)

// FS opens directories by path; everything else happens below those.
type FS interface {
	// OpenDir opens the directory at path, following symbolic links.
	OpenDir(path string) (Dir, error)
}

// Dir is an open directory. It stays bound to that very directory, whatever
// happens to its name. Names are single path elements: what is opened lies in the
// directory itself, and is no link (openat2(2) sees to that where there is one).
// No call waits for the other end of a FIFO.
//
// All errors are *fs.PathError around the system's own error number.
type Dir interface {
	Descriptions
	Openings
	// Mkdir makes the directory name.
	Mkdir(name string, mode uint32) error
	// Rename moves oldname of this directory to newname of another one in one
	// system call. Unlike os.Rename it does not refuse an existing directory as
	// the target: the file system does, unless that directory is empty.
	Rename(oldname string, to Dir, newname string) error
	// Unlink removes the file name, never a directory.
	Unlink(name string) error
	// Rmdir removes the directory name if it is empty.
	Rmdir(name string) error
	// Touch sets this directory's times to now by the clock of the file system's
	// server (utimensat(2) with UTIME_NOW), not by this host's.
	Touch() error
	// TouchFile does the same for the file name.
	TouchFile(name string) error
	// Sync brings the directory's entries to stable storage.
	Sync() error
	// Path is the path under which the directory was opened, for messages.
	Path() string
	// Pin returns the descriptor's number, for inotify(7) and the like, and keeps it
	// from being closed until Unpin. The error is fs.ErrClosed after Close.
	Pin() (int, error)
	Unpin()
	// Close closes the descriptor as soon as no call is using it. Later calls of
	// any method answer fs.ErrClosed and touch nothing.
	Close() error
}

// Openings are how one gets into a directory.
type Openings interface {
	// Guard sets the rules for all that is opened or made in this directory from now
	// on, and in directories that are opened in it.
	Guard(rules Rules)
	// OpenDir opens the directory name. A symbolic link is refused.
	OpenDir(name string) (Dir, error)
	// Enter opens the directory name for all but Touch. A server is not asked for it if
	// the system can do without: what is entered, and judged by the rules, is what an NFS
	// client remembers of it, as long as it does.
	Enter(name string) (Dir, error)
	// Open opens the file name for reading. A symbolic link is refused.
	Open(name string) (File, error)
	// Create makes the file name, which must not exist, and opens it for writing.
	Create(name string, mode uint32) (File, error)
	// OpenAppend opens the file name for appending and makes it if it is absent.
	OpenAppend(name string, mode uint32) (File, error)
	// OpenDurable opens the file name for writes that are on stable storage
	// when they return, and makes it if it is absent.
	OpenDurable(name string, mode uint32) (File, error)
	// OpenAppendDurable does both: a write goes to where the server finds the end, if the
	// file system leaves that to it (NFS does not), and is on stable storage.
	OpenAppendDurable(name string, mode uint32) (File, error)
}

// Descriptions are what a directory tells about itself and its entries.
type Descriptions interface {
	// Stat describes this directory as the server sees it now, not a cache.
	Stat() (Info, error)
	// StatName does the same for the entry name; links are not followed. The name
	// itself is looked up in the client's cache unless the directory is known to
	// have changed: call Stat on it first where that matters.
	StatName(name string) (Info, error)
	// StatCached describes this directory as this host knows it, without asking the
	// server: after a call that changed it, as that call left it, or later.
	StatCached() (Info, error)
	// Handle is what tells the file name from all others. The name is looked up like
	// StatName's. The error is errors.ErrUnsupported, or what the system says, where
	// files have none.
	Handle(name string) (Handle, error)
	// List shows the names in this directory to visit in no particular order, until visit
	// wants no more. A piece of them is in memory at a time, however many there are.
	List(visit func(name string) (more bool)) error
	// ListFiles does the same for all that is not a directory.
	ListFiles(visit func(name string) (more bool)) error
	// FileSystem says what file system the directory is on.
	FileSystem() (FileSystem, error)
}

// File is an open file.
type File interface {
	// Read reads on. The error is io.EOF at the end.
	Read(p []byte) (int, error)
	// ReadAt does so from a place in the file, with one call of the system: it may read
	// less than there is.
	ReadAt(p []byte, off int64) (int, error)
	Write(p []byte) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Stat describes the open file as the server sees it now.
	Stat() (Info, error)
	// StatCached describes the open file as this host knows it, without asking the
	// server.
	StatCached() (Info, error)
	// Handle is what tells this file from all others. It asks no server.
	Handle() (Handle, error)
	// Sync brings the file's content to stable storage.
	Sync() error
	// Flush sends the file's content to the disk, and waits until it is there. It does
	// not wait for what the file system writes down of it: see FileSystem.Ordered.
	Flush() error
	Close() error
}

// Handle names one file. Other than an inode number, which a file gets that was made
// after another was removed, no other file has the same, ever, where the file system
// counts the generations of its inodes, as NFS servers must (RFC 1813 2.4); FUSE need
// not. It is not empty.
type Handle string

// Info is what the protocol needs to know about a file or directory. Times are
// those of the file system's server.
type Info struct {
	Mode       fs.FileMode
	Size       int64
	ModTime    time.Time
	ChangeTime time.Time
	Device     uint64
	Inode      uint64
	Links      uint64
	UID, GID   uint32
}

// Rules are for what is opened and made in a directory.
type Rules struct {
	// Admit is asked about all that has been opened, with the description that its
	// descriptor gives, and says why it is not to be used; nil if everything is. Append is
	// true of files that are to be written to and may have been there before.
	Admit func(info Info, appended bool) error
	// Drop are those bits of a mode that nothing that is made gets, and Keep are those
	// that it gets whatever the umask.
	Drop, Keep fs.FileMode
}

// Same says that two descriptions are of one file or directory. That is not certain where
// inode numbers are made up by the client.
func (i Info) Same(other Info) bool { return i.Inode == other.Inode && i.Device == other.Device }

// FileSystem names a kind of file system.
type FileSystem struct {
	// Type is the system's own number or name for it, for messages and markers.
	Type string
	// Local is true if it is known that one kernel has all of it to itself, so
	// that no client cache can be stale and a process that wrote without syncing
	// lost its data only if this kernel went down.
	Local bool
	// NFS is true on an NFS client. There a file's Handle is the server's, and every
	// change of a directory's entries, whoever makes it, changes the times that Stat
	// tells; so does a move of the directory itself, on the file systems that servers use.
	NFS bool
	// ManyClocks is true unless one kernel or server is known to date all changes. Clients
	// of SMB, SFTP, GlusterFS and CephFS give some times by their own clocks.
	ManyClocks bool
	// Ordered is true if a local file system is known to write down its changes in
	// their order: a file that was flushed before it was renamed is whole wherever its
	// new name is, also after a power loss.
	Ordered bool
}
