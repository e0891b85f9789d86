package fslock

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
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
	group, err := s.findGroupFiles()
	if err != nil {
		return nil, err
	}
	defer group.Close() //nolint:errcheck // a directory
	return s.findDir(group, name)
}

// findGroupFiles opens BASE/.multilock/groups/GROUP if it exists.
func (s *Source) findGroupFiles() (vfs.Dir, error) {
	dir, err := s.findDir(s.base, shareddir.PrivateDir)
	for _, element := range []string{groupsDir, s.group} {
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

// History returns the group's events since a moment, oldest first. Lines that
// cannot be read (a host's crash can tear one) are left out.
func (s *Source) History(_ context.Context, since time.Time) ([]source.Event, error) {
	dir, err := s.findGroupPrivate(historyDir)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, opError("open the history", "", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	names, err := dir.List()
	if err = ignoreGone(err); err != nil {
		return nil, opError("list the history", "", err)
	}
	var events []source.Event
	for _, name := range names {
		if !strings.HasSuffix(name, historySuffix) || endsBefore(name, since) {
			continue
		}
		more, err := readHistory(dir, name, since)
		if err = ignoreGone(err); err != nil {
			return nil, opError("read the history", "", err)
		}
		events = append(events, more...)
	}
	slices.SortStableFunc(events, func(a, b source.Event) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	return events, nil
}

// endsBefore says whether a day's file is over before a moment.
func endsBefore(name string, moment time.Time) bool {
	day, _, _ := strings.Cut(name, ".")
	date, err := time.Parse(time.DateOnly, day)
	return err == nil && date.AddDate(0, 0, 1).Before(moment)
}

func readHistory(dir vfs.Dir, name string, since time.Time) ([]source.Event, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	var events []source.Event
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		var e source.Event
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &e) == nil && !e.Time.Before(since) {
			events = append(events, e)
		}
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
