package fslock

import (
	"github.com/multilock/go/multilock/fslock/internal/history"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Names below the base directory. GROUP holds nothing but held locks, so that it
// is empty exactly when nothing in it is held.
const (
	fenceDir = "fence"
	doneDir  = "done"
	logsDir  = "logs"
	queueDir = "queue"

	lockedSuffix = ".locked" // the lock
	jobSuffix    = ".job"    // the process groups that work under it
	newJobSuffix = ".newjob" // about to take the place of that
	resultSuffix = ".result" // how the job ended, about to be committed
	forgotSuffix = ".forgot" // a committed result, about to be removed
	peerSuffix   = ".lock"   // what the Python MultiLock has before its own rename
	sillyPrefix  = ".nfs"    // a file that was removed while somebody on that NFS client had it open
	logSuffix    = ".out"

	// DefaultGroup and DefaultName are those of the Python MultiLock.
	DefaultGroup = ".locks"
	DefaultName  = "lock"
)

// DefaultHistoryKeep is how long a group's history is kept if Options do not say otherwise.
const DefaultHistoryKeep = history.DefaultKeep

// nameMax is NAME_MAX of every file system of consequence, in bytes.
const nameMax = 255

// maxName is what that leaves for a name with the longest suffix behind it.
const maxName = nameMax - len(lockedSuffix)

// unsyncedMark is the sticky bit on a lock file: its writer did not sync it,
// because nobody but its own kernel can see the file system. If such a file
// turns out to be empty, that kernel went down, and its writer with it.
const unsyncedMark = 0o1000

// CheckName says whether name can be the name of a lock or a group. Names are
// data: every byte is kept, but for what a file system cannot hold.
func CheckName(name string) error { return checkElement("lock name", name) }

// CheckName implements source.NameChecker.
func (s *Source) CheckName(name string) error { return CheckName(name) }

func checkElement(what, name string) error {
	why := vfs.NameProblem(name, maxName)
	if why == "" {
		return nil
	}
	return &source.InvalidError{What: what, Got: name, Why: why}
}

// besides are the files that a lock's directory may have beside the lock file.
func besides(name string) []string {
	return []string{name + newJobSuffix, name + jobSuffix, name + resultSuffix, name + forgotSuffix}
}

func checkGroup(group string) error {
	if group == shareddir.PrivateDir {
		return &source.InvalidError{What: "lock group", Got: group, Why: "is where multilock keeps its own files; choose another"}
	}
	return checkElement("lock group", group)
}
