package fslock

import (
	"github.com/multilock/go/multilock/fslock/internal/history"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Names below the base directory. GROUP contains only held locks, so that it is empty exactly when no lock
// of the group is held.
const (
	fenceDir = "fence"
	doneDir  = "done"
	logsDir  = "logs"
	queueDir = "queue"
	runsDir  = "runs"

	lockedSuffix = ".locked" // the lock
	jobSuffix    = ".job"    // the process groups of the holder's jobs
	newJobSuffix = ".newjob" // about to replace the job file
	resultSuffix = ".result" // how the job ended, about to be committed
	forgotSuffix = ".forgot" // a committed result, about to be removed
	peerSuffix   = ".lock"   // the Python MultiLock's file before its own rename
	sillyPrefix  = ".nfs"    // a file that was removed while a process on that NFS client had it open
	logSuffix    = ".out"

	// DefaultGroup and DefaultName are those of the Python MultiLock.
	DefaultGroup = ".locks"
	DefaultName  = "lock"
)

// DefaultHistoryKeep is how long a group's history is kept if Options do not say otherwise.
const DefaultHistoryKeep = history.DefaultKeep

// nameMax is NAME_MAX of every file system of consequence, in bytes.
const nameMax = 255

// maxName is the longest name that leaves room for the longest suffix.
const maxName = nameMax - len(lockedSuffix)

// unsyncedMark is the sticky bit on a lock file that its writer did not sync, because only the writer's
// kernel sees the file system. If such a file is empty, that kernel went down, and the writer with it.
const unsyncedMark = 0o1000

// CheckName checks whether name is valid for a lock or a group. Every byte is allowed that a file system
// can store.
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

// besides lists the files that a lock's directory may contain beside the lock file.
func besides(name string) []string {
	return []string{name + newJobSuffix, name + jobSuffix, name + resultSuffix, name + forgotSuffix}
}

func checkGroup(group string) error {
	if group == shareddir.PrivateDir {
		return &source.InvalidError{What: "lock group", Got: group, Why: "is where multilock keeps its own files; choose another"}
	}
	return checkElement("lock group", group)
}
