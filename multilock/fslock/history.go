package fslock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The history of a group is one file of JSON lines per host, boot and day:
// BASE/.multilock/groups/GROUP/history/DAY.HOST.BOOT.jsonl. Only one kernel ever
// appends to a file, because appending from two NFS clients loses lines.

const historySuffix = ".jsonl"

// Append writes an event to the group's history.
func (s *Source) Append(ctx context.Context, e source.Event) error {
	return s.Record(ctx, []source.Event{e})
}

func (s *Source) historyFile(at time.Time) string {
	boot := s.self.Boot
	if len(boot) > 8 {
		boot = boot[:8]
	}
	host := strings.ReplaceAll(source.Shorten(s.self.Host, 64), "/", "_")
	return at.UTC().Format(time.DateOnly) + "." + host + "." + boot + historySuffix
}

// openGroupPrivate opens BASE/.multilock/groups/GROUP/name, made if absent.
func (s *Source) openGroupPrivate(name string, open shareddir.Opener) (vfs.Dir, error) {
	group, err := s.openGroupFiles(open)
	if err != nil {
		return nil, err
	}
	defer group.Close() //nolint:errcheck // a directory
	return shareddir.OpenDir(group, name, open)
}

// openGroupFiles opens BASE/.multilock/groups/GROUP, made if absent.
func (s *Source) openGroupFiles(open shareddir.Opener) (vfs.Dir, error) {
	groups, err := s.base.Below(groupsDir, open)
	if err != nil {
		return nil, err
	}
	defer groups.Close() //nolint:errcheck // a directory
	return shareddir.OpenDir(groups, s.group, open)
}

// findGroupPrivate opens one of the group's directories if it exists; gone(err)
// otherwise.
func (s *Source) findGroupPrivate(name string) (vfs.Dir, error) {
	return s.find(vfs.Dir.OpenDir, groupsDir, s.group, name)
}

// find opens a directory of .multilock by its path if it exists; gone(err) otherwise.
func (s *Source) find(open shareddir.Opener, path ...string) (vfs.Dir, error) {
	dir, err := s.findDir(s.base, shareddir.PrivateDir, open)
	for _, element := range path {
		if err != nil {
			return nil, err
		}
		parent := dir
		dir, err = s.findDir(parent, element, open)
		_ = parent.Close()
	}
	return dir, err
}

// findDir opens the directory name if it exists. An NFS client may have cached that it
// does not: fetching the parent's attributes ends that.
func (s *Source) findDir(parent vfs.Dir, name string, open shareddir.Opener) (vfs.Dir, error) {
	dir, err := open(parent, name)
	if s.base.Kind.Local || !is(err, syscall.ENOENT) {
		return dir, err
	}
	return shareddir.Afresh(parent, name)
}

// endsBefore says whether a day's file is over before a moment.
func endsBefore(name string, moment time.Time) bool {
	day, _, _ := strings.Cut(name, ".")
	date, err := time.Parse(time.DateOnly, day)
	return err == nil && date.AddDate(0, 0, 1).Before(moment)
}

var _ source.Journal = (*Source)(nil)

// Record implements source.Journal. The file is opened for each call: closing
// it is what makes an NFS client send what was written, so that others can see it.
func (s *Source) Record(_ context.Context, events []source.Event) error {
	if len(events) == 0 {
		return nil
	}
	for len(events) > 0 {
		file := s.historyFile(events[0].Time)
		n := 1
		for n < len(events) && s.historyFile(events[n].Time) == file {
			n++
		}
		if err := s.record(file, events[:n]); err != nil {
			return opError("write the history", events[0].Name, err)
		}
		events = events[n:]
	}
	return nil
}

// record adds the events of one day.
func (s *Source) record(file string, events []source.Event) error {
	dir, f, err := openIn(s.histories, func(dir vfs.Dir) (vfs.File, error) { return dir.OpenAppend(file, shareddir.AppendMode) })
	if err != nil {
		return err
	}
	defer s.histories.Done(dir)
	begun, err := appendEvents(f, events)
	if err == nil && begun && file == s.historyFile(time.Now()) { //nolint:forbidigo // a day, not a duration
		s.shorten(dir)
	}
	return err
}

// openIn opens a file in a directory, once more if that was removed or replaced since it
// was opened.
func openIn(in *shareddir.Dir, open func(vfs.Dir) (vfs.File, error)) (dir *shareddir.Handle, f vfs.File, err error) {
	for range 2 {
		if dir, err = in.Use(); err != nil {
			return nil, nil, err
		}
		if f, err = open(dir); err == nil {
			return dir, f, nil
		}
		if gone(err) {
			in.Drop(dir)
		}
		in.Done(dir)
		if !gone(err) {
			break
		}
	}
	return nil, nil, err
}

// appendEvents adds the events to a file with one write, and closes it: other processes
// of this host append to it, too. Begun says that they are its first.
func appendEvents(f vfs.File, events []source.Event) (begun bool, err error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, e := range events {
		e.Time = e.Time.UTC()
		e.Name = source.EncodeName(e.Name)
		if err := encoder.Encode(e.Bounded()); err != nil {
			return false, errors.Join(err, f.Close())
		}
	}
	_, err = f.Write(lines.Bytes())
	info, unknown := f.StatCached()
	return unknown == nil && info.Size == int64(lines.Len()), errors.Join(err, f.Close())
}
