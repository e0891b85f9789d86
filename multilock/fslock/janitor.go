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

// leftoverAge is the minimum age of a leftover whose creator cannot be judged: a contender may wait for
// long, but hardly for a day.
const leftoverAge = 24 * time.Hour

// maxLeftovers bounds how many leftovers are listed, of the unknown ones and of the others separately.
const maxLeftovers = 10_000

// Leftovers lists what crashed and live contenders have in the staging directory: some thousands of entries
// if there are very many.
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
	listed := map[bool]int{} // by Strange, so that unknown entries do not crowd out the others
	err = staging.List(func(entry string) bool {
		l, ok := s.leftover(staging, entry, now)
		if ok && listed[l.Strange] < maxLeftovers {
			listed[l.Strange]++
			found = append(found, l)
		}
		return listed[false] < maxLeftovers && ctx.Err() == nil
	})
	if err = cmp.Or(ignoreGone(err), ctx.Err()); err != nil {
		return nil, opError("list the stale files", "", err)
	}
	return found, nil
}

func (s *Source) leftover(staging vfs.Dir, entry string, now time.Time) (source.Leftover, bool) {
	info, err := staging.StatName(entry)
	if err != nil {
		return source.Leftover{}, false // acquired or swept meanwhile
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
		l.Why = "the process that made it is alive: " + maker.Why
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

// stagedRecord reads the record in a staged directory, whatever lock it is for. A record without a name
// means that the directory has no readable record; an error may be temporary.
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

// Sweep removes the dead leftovers. It returns them, and the strange ones. It continues after an error, and
// joins all errors.
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

// sweep removes one staged directory. It first moves the directory to another name: if its contender
// resumes, its rename fails. If the directory were emptied in place, the contender could rename it empty,
// and an empty lock directory is free for everyone.
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
				return nil // it became a lock, or another process swept it
			}
			return opError("sweep", "", err)
		}
	}
	return s.empty(staging, trash)
}

// empty empties and removes a directory of the trash, if it contains only the protocol's files.
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

// held reports whether the lock in a staged directory is in place as well. BeeGFS moves a directory in two
// steps and can leave it under both names. An error means that this is unknown: the directory may be a
// lock, and must stay.
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
