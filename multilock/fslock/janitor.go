package fslock

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// leftoverAge is how old a leftover must be whose maker cannot be judged: a
// contender may wait for long, but hardly for a day.
const leftoverAge = 24 * time.Hour

// maxLeftovers is how many are told of at a time, of the strange ones and of the others.
const maxLeftovers = 10_000

// Leftovers implements source.Sweeper: it lists what is in the staging directory.
func (s *Source) Leftovers(ctx context.Context) ([]source.Leftover, error) {
	staging, err := s.files.FindWith(vfs.Dir.OpenDir, shareddir.StagingDir)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, opError("open the staging directory", "", err)
	}
	defer staging.Close() //nolint:errcheck // a directory
	now, err := s.base.Now(source.ClockFresh)
	if err != nil {
		return nil, err
	}
	var found []source.Leftover
	told := map[bool]int{} // by whether they are strange: those keep nothing else from being found
	err = staging.List(func(entry string) bool {
		l, ok := s.leftover(staging, entry, now)
		if ok && told[l.Strange] < maxLeftovers {
			told[l.Strange]++
			found = append(found, l)
		}
		return told[false] < maxLeftovers && ctx.Err() == nil
	})
	if err = cmp.Or(ignoreGone(err), ctx.Err()); err != nil {
		return nil, opError("list the leftovers", "", err)
	}
	return found, nil
}

func (s *Source) leftover(staging vfs.Dir, entry string, now time.Time) (source.Leftover, bool) {
	info, err := staging.StatName(entry)
	if err != nil {
		return source.Leftover{}, false // taken or swept meanwhile
	}
	l := source.Leftover{Entry: entry, Age: now.Sub(info.ModTime)}
	if l.Why = strangeness(staging, entry, info); l.Why != "" {
		l.Strange = true
		return l, true
	}
	maker := s.maker(staging, entry)
	switch {
	case isSilly(entry) && len(readersOf(entry)) > 0:
		l.Why = "it goes when " + strings.Join(readersOf(entry), ", ") + " on this host closes it"
	case maker.Life == process.Gone:
		l.Dead, l.Why = true, "its maker is gone: "+maker.Why
	case maker.Life == process.Alive:
		l.Why = "its maker is at work: " + maker.Why
	case l.Age > leftoverAge:
		l.Dead, l.Why = true, "it is older than a day"
	default:
		l.Why = "it is younger than a day, and its maker cannot be judged from here"
	}
	return l, true
}

// maker judges the process that staged an entry.
func (s *Source) maker(staging vfs.Dir, entry string) process.Evidence {
	dir, err := staging.OpenDir(entry)
	if err != nil {
		return process.Evidence{}
	}
	defer dir.Close() //nolint:errcheck // a directory
	record, err := stagedRecord(dir)
	if err != nil || record.Holder.PID <= 0 {
		return process.Evidence{}
	}
	return record.Holder.Judge(s.self)
}

// stagedRecord reads the record in a staged directory, whatever lock it is for. It has no
// name if there is none that can be read, ever; an error may pass.
func stagedRecord(dir vfs.Dir) (source.Record, error) {
	files, err := shareddir.Names(dir.List, func(name string) bool { return strings.HasSuffix(name, lockedSuffix) })
	if err != nil {
		return source.Record{}, err
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, lockedSuffix)
		data, _, err := readLocked(dir, name)
		switch {
		case err == nil:
			return ParseRecord(name, data), nil
		case inDoubt(err) && !errors.Is(err, errNotRegular):
			return source.Record{}, err
		}
	}
	return source.Record{}, nil
}

// Sweep implements source.Sweeper.
func (s *Source) Sweep(ctx context.Context) ([]source.Leftover, error) {
	all, err := s.Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	var swept []source.Leftover
	var failed error
	for _, l := range all {
		if !l.Dead {
			if l.Strange {
				swept = append(swept, l)
			}
			continue
		}
		if err := s.sweep(l.Entry); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		swept = append(swept, l)
	}
	return swept, failed
}

// sweep removes one staged directory. It takes it away under another name first:
// should its contender come back to life, its rename finds nothing. Emptied in
// place, the directory could be renamed empty, and an empty lock is free for all.
func (s *Source) sweep(entry string) error {
	staging, err := s.base.Staging.Use()
	if err != nil {
		return opError("sweep", "", err)
	}
	defer s.base.Staging.Done(staging)
	trash := entry
	if !strings.HasPrefix(entry, groupfiles.TrashPrefix) {
		token := source.NewToken()
		trash = groupfiles.TrashPrefix + token
		if err := staging.Rename(entry, staging.Dir, trash); err != nil {
			if gone(err) {
				return nil // it became a lock, or somebody else swept it
			}
			return opError("sweep", "", err)
		}
	}
	return s.empty(staging, trash)
}

// empty removes a directory of the trash with what the protocol puts in one.
func (s *Source) empty(staging vfs.Dir, trash string) error {
	dir, err := staging.OpenDir(trash)
	if gone(err) {
		return nil
	}
	if is(err, syscall.ENOTDIR) {
		if err := staging.Unlink(trash); err != nil && !gone(err) {
			return opError("sweep", "", err)
		}
		return nil
	}
	if err != nil {
		return opError("sweep", "", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	held, err := s.held(dir)
	if held {
		return nil
	}
	if err == nil {
		err = emptyTree(dir)
	}
	if err != nil {
		return opError("sweep", "", err)
	}
	if err := staging.Rmdir(trash); err != nil && !gone(err) && !notEmpty(err) {
		return opError("sweep", "", err)
	}
	return nil
}

// held says whether the lock in a staged directory is in place as well. BeeGFS
// moves a directory in two steps and can leave it under both names. An error says that
// nobody knows: the directory may be a lock, and is left alone.
func (s *Source) held(dir vfs.Dir) (bool, error) {
	record, err := stagedRecord(dir)
	if err != nil || record.Name == "" {
		return false, err
	}
	group, err := s.groupDir.Use()
	if err != nil {
		return false, ignoreGone(err)
	}
	defer s.groupDir.Done(group)
	inPlace, content, err := s.openFresh(group, record.Name)
	if inPlace != nil {
		_ = inPlace.Close()
	}
	if inDoubt(err) {
		return false, err
	}
	return content != nil && ParseRecord(record.Name, content).Token == record.Token, nil
}
