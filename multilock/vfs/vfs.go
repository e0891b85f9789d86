// Package vfs is the interface between the lock protocol and the file system: the few calls that
// the protocol makes, each one system call where possible, on directory descriptors instead of paths.
//
// Descriptors matter. After ESTALE the Linux kernel resolves a path again by itself, and may then act
// on another lock than the one that was inspected. A call through a descriptor affects that directory
// or fails (path_resolution(7), and fs/namei.c, retry_estale).
//
// The package adds nothing to the kernel's semantics: no retries of calls that change something, and
// no checks before them. Package faultfs wraps it in tests.
package vfs

import (
	"io/fs"
	"time"
)

// FS opens directories by path; all other calls are made on open directories.
type FS interface {
	// OpenDir opens the directory at path, following symbolic links.
	OpenDir(path string) (Dir, error)
}

// Dir is an open directory. It remains the same directory, whatever happens to its name. Names are
// single path elements: a call only opens entries of the directory itself, and no links (guaranteed by
// openat2(2) where available). No call waits for the other end of a FIFO.
//
// All errors are *fs.PathError with the system's error number.
type Dir interface {
	Descriptions
	Openings
	// Mkdir creates the directory name.
	Mkdir(name string, mode uint32) error
	// Rename moves oldname from this directory to newname in another one with one system call. Unlike
	// os.Rename it does not reject an existing directory as the target: the file system does, unless
	// that directory is empty.
	Rename(oldname string, to Dir, newname string) error
	// Unlink removes the file name, never a directory.
	Unlink(name string) error
	// Rmdir removes the directory name if it is empty.
	Rmdir(name string) error
	// Touch sets this directory's times to now by the clock of the file system's
	// server (utimensat(2) with UTIME_NOW), not by this host's.
	Touch() error
	// TouchFile is Touch for the file name.
	TouchFile(name string) error
	// Sync writes the directory's entries to stable storage.
	Sync() error
	// Path returns the path under which the directory was opened, for messages.
	Path() string
	// Pin returns the descriptor's number, for calls such as inotify(7), and keeps it open until Unpin.
	// The error is fs.ErrClosed after Close.
	Pin() (int, error)
	Unpin()
	// Close closes the descriptor once no call uses it. Later calls of any method return fs.ErrClosed
	// and have no effect.
	Close() error
}

// Openings are the calls that open and create entries.
type Openings interface {
	// Guard sets the rules for all later opens and creations in this directory, and in directories that
	// are opened in it.
	Guard(rules Rules)
	// OpenDir opens the directory name, and rejects a symbolic link.
	OpenDir(name string) (Dir, error)
	// Enter opens the directory name for all calls but Touch, without a request to the server if possible:
	// an NFS client uses its cached directory, as long as it has one, and the rules apply to that.
	Enter(name string) (Dir, error)
	// Open opens the file name for reading, and rejects a symbolic link.
	Open(name string) (File, error)
	// Create creates the file name, which must not exist, and opens it for writing.
	Create(name string, mode uint32) (File, error)
	// OpenAppend opens the file name for appending, and creates it if it is absent.
	OpenAppend(name string, mode uint32) (File, error)
	// OpenDurable opens the file name, and creates it if it is absent. When a write returns, its data is
	// on stable storage.
	OpenDurable(name string, mode uint32) (File, error)
	// OpenAppendDurable is OpenAppend with durable writes. The server determines the end of the file if
	// the file system lets it (NFS does not).
	OpenAppendDurable(name string, mode uint32) (File, error)
}

// Descriptions are the calls that describe a directory and its entries.
type Descriptions interface {
	// Stat describes this directory as the server has it now, not from a cache.
	Stat() (Info, error)
	// StatName is Stat for the entry name; it does not follow links. The client may look up the name in
	// its cache unless it knows that the directory has changed: call Stat on the directory first if that
	// matters.
	StatName(name string) (Info, error)
	// StatCached describes this directory as known to this host, without a request to the server. It is
	// never older than the last call that changed the directory.
	StatCached() (Info, error)
	// Handle returns the unique handle of the file name. It looks the name up like StatName. The error is
	// errors.ErrUnsupported, or the system's, if files have no handles.
	Handle(name string) (Handle, error)
	// List calls visit with the names in this directory, in no particular order, until it returns false.
	// It keeps only some of them in memory at a time.
	List(visit func(name string) (more bool)) error
	// ListFiles is List for all entries but directories.
	ListFiles(visit func(name string) (more bool)) error
	// FileSystem returns the kind of file system of the directory.
	FileSystem() (FileSystem, error)
}

// File is an open file.
type File interface {
	// Read reads from the current offset. The error is io.EOF at the end.
	Read(p []byte) (int, error)
	// ReadAt reads from an offset with one system call: it may return less than the file has.
	ReadAt(p []byte, off int64) (int, error)
	Write(p []byte) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Stat describes the open file as the server has it now.
	Stat() (Info, error)
	// StatCached describes the open file as known to this host, without a request to the server.
	StatCached() (Info, error)
	// Handle returns the unique handle of the file, without a request to the server.
	Handle() (Handle, error)
	// Sync writes the file's content to stable storage.
	Sync() error
	// Flush writes the file's content to the disk and waits for that. It does not wait for the file
	// system's metadata: see FileSystem.Ordered.
	Flush() error
	Close() error
}

// Handle identifies one file. It is not empty. An inode number may be reused after its file was removed;
// a handle is never reused if the file system counts generations of inodes, as NFS servers must (RFC
// 1813 2.4). FUSE file systems need not.
type Handle string

// Info is what the protocol needs to know about a file or directory. Times are those of the file
// system's server.
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

// Rules restrict what is opened and created in a directory.
type Rules struct {
	// Admit, if not nil, is called for each opened entry with the description from its descriptor, and
	// returns why the entry must not be used. appended is true for files that will be written to and may
	// have existed before.
	Admit func(info Info, appended bool) error
	// Drop are the mode bits that no new entry gets. Keep are those that it gets despite the umask.
	Drop, Keep fs.FileMode
}

// Same reports whether two descriptions are of one file or directory. It is not reliable if the client
// makes up inode numbers.
func (i Info) Same(other Info) bool { return i.Inode == other.Inode && i.Device == other.Device }

// FileSystem names a kind of file system.
type FileSystem struct {
	// Type is the system's number or name for it, for messages and markers.
	Type string
	// Local is true if only one kernel is known to use the file system: no client cache can be stale, and
	// unsynced data of a process is lost only if this kernel crashes.
	Local bool
	// NFS is true on an NFS client. There a file's Handle is the server's, and every change of a
	// directory's entries, by any host, changes the times from Stat. A move of the directory itself does
	// so, too, on the file systems that servers use.
	NFS bool
	// ManyClocks is true unless one kernel or server is known to set all timestamps. Clients of SMB, SFTP,
	// GlusterFS and CephFS set some times by their own clocks.
	ManyClocks bool
	// Ordered is true if a local file system is known to write changes in their order: a file that was
	// flushed before a rename is complete under its new name, even after a power loss.
	Ordered bool
}
