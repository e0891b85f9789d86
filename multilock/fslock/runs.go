package fslock

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// RunFile is a file in BASE/.multilock/groups/GROUP/runs/LOCK: a part of the output of one run under that
// lock. Only the holder writes there, and removes the files of earlier runs.
type RunFile struct {
	Name    string
	Run     uint64 // the run's fencing number
	Token   string // of its acquisition
	Part    int    // from 1
	Size    int64
	ModTime time.Time // by the server's clock
}

// OpenRuns opens the directory with the output of runs under a lock, and makes it if it is absent.
func (s *Source) OpenRuns(lock string) (*Logs, error) {
	dir, err := s.files.Make(runsDir, vfs.Dir.OpenDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return s.runsIn(shareddir.OpenDir(dir, lock, vfs.Dir.OpenDir))
}

// FindRuns opens that directory without making it: the error is fs.ErrNotExist if there is no output.
func (s *Source) FindRuns(lock string) (*Logs, error) {
	return s.runsIn(s.files.Find(runsDir, lock))
}

func (s *Source) runsIn(dir vfs.Dir, err error) (*Logs, error) {
	logs, err := s.logsIn(dir, err)
	if err == nil {
		logs.runs = true
	}
	return logs, err
}

// CapturedLocks lists the locks with captured output of runs.
func (s *Source) CapturedLocks() ([]string, error) {
	return s.namesBelow(groupfiles.Root, s.group, runsDir)
}

// RunFileName is the name of a file for Create.
func RunFileName(run uint64, token string, part int) string {
	return fmt.Sprintf("%012d.%s.%04d", run, token, part)
}

// ParseRunFile parses the name of a file with its suffix.
func ParseRunFile(name string) (f RunFile, ok bool) {
	parts := strings.Split(strings.TrimSuffix(name, logSuffix), ".")
	if len(parts) != 3 || !source.IsToken(parts[1]) {
		return RunFile{}, false
	}
	run, err := strconv.ParseUint(parts[0], 10, 64)
	part, failed := strconv.Atoi(parts[2])
	f = RunFile{Name: name, Run: run, Token: parts[1], Part: part}
	return f, err == nil && failed == nil && part > 0 && RunFileName(run, f.Token, part)+logSuffix == name
}

// Runs lists the files, the oldest run first. It skips anything else in the directory.
func (l *Logs) Runs() (files []RunFile, err error) {
	names, err := l.Names()
	for _, name := range names {
		f, ok := ParseRunFile(name)
		if !ok {
			continue
		}
		info, err := l.dir.StatName(name)
		if err != nil || !shareddir.IsRegular(info) {
			continue // it was removed, or is not ours
		}
		f.Size, f.ModTime = info.Size, info.ModTime
		files = append(files, f)
	}
	return files, err
}

// Remove removes a file with output.
func (l *Logs) Remove(name string) error { return groupfiles.IgnoreGone(l.dir.Unlink(name)) }

// DropRuns removes a lock's directory of output if it is empty.
func (s *Source) DropRuns(lock string) error {
	dir, err := s.files.Find(runsDir)
	if err != nil {
		return groupfiles.IgnoreGone(err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	if err := dir.Rmdir(lock); !notEmpty(err) {
		return groupfiles.IgnoreGone(err)
	}
	return nil
}

// Now is the time by the server's clock, for comparison with RunFile.ModTime.
func (l *Logs) Now() (time.Time, error) { return l.src.base.Now(source.ClockFresh) }
