package fslock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// DefaultHistoryKeep is for how long a history is kept if nobody says anything else. Who
// counts refusals in it ("run --fail-after") looks back as far.
const DefaultHistoryKeep = 90 * 24 * time.Hour

var _ source.Retention = (*Source)(nil)

// Expired implements source.Retention: the files of days that were over for so long, by
// the server's clock. A host whose own is wrong takes nothing for old.
func (s *Source) Expired(_ context.Context, keep time.Duration) ([]string, error) {
	return s.inHistory(s.expired, keep)
}

// Expire implements source.Retention.
func (s *Source) Expire(_ context.Context, keep time.Duration) ([]string, error) {
	return s.inHistory(s.expire, keep)
}

func (s *Source) inHistory(do func(vfs.Dir, time.Duration) ([]string, error), keep time.Duration) ([]string, error) {
	var names []string
	dir, err := s.findGroupPrivate(historyDir)
	if err == nil {
		defer dir.Close() //nolint:errcheck // a directory
		names, err = do(dir, keep)
	}
	if err = ignoreGone(err); err != nil {
		err = opError("shorten the history", "", err)
	}
	return names, err
}

// expire removes what is older. What somebody else has removed is gone as well.
func (s *Source) expire(dir vfs.Dir, keep time.Duration) (removed []string, err error) {
	names, err := s.expired(dir, keep)
	for _, name := range names {
		switch failed := dir.Unlink(name); {
		case failed == nil:
			removed = append(removed, name)
		case !gone(failed):
			err = errors.Join(err, failed)
		}
	}
	return removed, err
}

// expired asks the server for the time if there is anything that may be old.
func (s *Source) expired(dir vfs.Dir, keep time.Duration) ([]string, error) {
	here := time.Now() //nolint:forbidigo // only for whether the server is asked
	names, err := shareddir.Names(dir.List, func(name string) bool { return ended(name, here.Add(-keep)) })
	if err != nil || len(names) == 0 {
		return nil, err
	}
	now, err := s.base.Now(source.ClockFresh)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		if !ended(name, now.Add(-keep)) {
			return true
		}
		info, err := dir.StatName(name)
		return err != nil || !shareddir.IsRegular(info)
	}), nil
}

// ended says whether a name is a history's, of a day that ended before a moment. Anything
// else in its directory is somebody else's.
func ended(name string, before time.Time) bool {
	parts := strings.Split(name, ".") // DAY.HOST.BOOT.jsonl; a host's name may have dots
	return len(parts) >= 4 && !slices.Contains(parts, "") && strings.HasSuffix(name, historySuffix) && endsBefore(name, before)
}

// shorten is for who begins the file of the day: once a day for each host.
// The events are written; that it fails is no failure of theirs.
func (s *Source) shorten(dir vfs.Dir) {
	if s.keep > 0 {
		_, _ = s.expire(dir, s.keep)
	}
}
