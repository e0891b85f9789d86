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
func (s *Source) openGroupPrivate(name string) (vfs.Dir, error) {
	group, err := s.openGroupFiles()
	if err != nil {
		return nil, err
	}
	defer group.Close() //nolint:errcheck // a directory
	return shareddir.OpenDir(group, name)
}

// openGroupFiles opens BASE/.multilock/groups/GROUP, made if absent.
func (s *Source) openGroupFiles() (vfs.Dir, error) {
	groups, err := s.base.Below(groupsDir)
	if err != nil {
		return nil, err
	}
	defer groups.Close() //nolint:errcheck // a directory
	return shareddir.OpenDir(groups, s.group)
}

// findGroupPrivate opens one of the group's directories if it exists; gone(err)
// otherwise.
func (s *Source) findGroupPrivate(name string) (vfs.Dir, error) {
	return s.find(groupsDir, s.group, name)
}

// find opens a directory of .multilock by its path if it exists; gone(err) otherwise.
func (s *Source) find(path ...string) (vfs.Dir, error) {
	dir, err := s.findDir(s.base, shareddir.PrivateDir)
	for _, element := range path {
		if err != nil {
			return nil, err
		}
		parent := dir
		dir, err = s.findDir(parent, element)
		_ = parent.Close()
	}
	return dir, err
}

// findDir opens the directory name if it exists. An NFS client may have cached that it
// does not: fetching the parent's attributes ends that.
func (s *Source) findDir(parent vfs.Dir, name string) (vfs.Dir, error) {
	dir, err := parent.OpenDir(name)
	if s.base.Kind.Local || !is(err, syscall.ENOENT) {
		return dir, err
	}
	if _, err := parent.Stat(); err != nil {
		return nil, err
	}
	return parent.OpenDir(name)
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
	dir, err := s.openGroupPrivate(historyDir)
	if err != nil {
		return opError("open the history", "", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	for len(events) > 0 {
		file := s.historyFile(events[0].Time)
		n := 1
		for n < len(events) && s.historyFile(events[n].Time) == file {
			n++
		}
		begun, err := appendEvents(dir, file, events[:n])
		if err != nil {
			return opError("write the history", events[0].Name, err)
		}
		if begun && file == s.historyFile(time.Now()) {
			s.shorten(dir)
		}
		events = events[n:]
	}
	return nil
}

// appendEvents adds the events to a file with one write: other processes of this
// host append to it, too. Begun says that they are its first.
func appendEvents(dir vfs.Dir, file string, events []source.Event) (begun bool, err error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, e := range events {
		e.Time = e.Time.UTC()
		if err := encoder.Encode(e.Bounded()); err != nil {
			return false, err
		}
	}
	f, err := dir.OpenAppend(file, shareddir.AppendMode)
	if err != nil {
		return false, err
	}
	_, err = f.Write(lines.Bytes())
	info, unknown := f.StatCached()
	return unknown == nil && info.Size == int64(lines.Len()), errors.Join(err, f.Close())
}
