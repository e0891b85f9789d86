package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// DefaultKeep is how long a history is kept by default. "run --fail-after" counts failed acquisitions
// over the same time.
const DefaultKeep = 90 * 24 * time.Hour

// Expired implements source.Retention: the files of days that ended longer ago than keep, by the
// server's clock, so that a host with a wrong clock removes nothing too early.
func (h *Journal) Expired(_ context.Context, keep time.Duration) ([]string, error) {
	return h.inHistory(h.expired, keep)
}

// Expire implements source.Retention.
func (h *Journal) Expire(_ context.Context, keep time.Duration) ([]string, error) {
	return h.inHistory(h.expire, keep)
}

func (h *Journal) inHistory(do func(vfs.Dir, time.Duration) ([]string, error), keep time.Duration) ([]string, error) {
	var names []string
	dir, err := h.files.Find(dirName)
	if err == nil {
		defer dir.Close() //nolint:errcheck // a directory
		names, err = do(dir, keep)
	}
	if err = groupfiles.IgnoreGone(err); err != nil {
		err = shareddir.OpError("shorten the history", "", err)
	}
	return names, err
}

// expire removes expired files. It ignores those that other processes have removed.
func (h *Journal) expire(dir vfs.Dir, keep time.Duration) (removed []string, err error) {
	names, err := h.expired(dir, keep)
	for _, name := range names {
		switch failed := dir.Unlink(name); {
		case failed == nil:
			removed = append(removed, name)
		case !vfs.Gone(failed):
			err = errors.Join(err, failed)
		}
	}
	return removed, err
}

// expired asks the server for the time only if there is a file that may have expired.
func (h *Journal) expired(dir vfs.Dir, keep time.Duration) ([]string, error) {
	here := time.Now() //nolint:forbidigo // only for whether the server is asked
	names, err := shareddir.Names(dir.List, func(name string) bool { return ended(name, here.Add(-keep)) })
	if err != nil || len(names) == 0 {
		return nil, err
	}
	now, err := h.files.Base.Now(source.ClockFresh)
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

// ended reports whether a name is that of a history file of a day that ended before a time. Other
// files in the directory are not ours.
func ended(name string, before time.Time) bool {
	parts := strings.Split(name, ".") // DAY.HOST.BOOT.jsonl; a host's name may have dots
	return len(parts) >= 4 && !slices.Contains(parts, "") && strings.HasSuffix(name, historySuffix) && endsBefore(name, before)
}

// shorten removes expired files. The process that begins the file of a day calls it, so once a day
// on each host. The events are written, so errors are ignored.
func (h *Journal) shorten(dir vfs.Dir) {
	if h.keep > 0 {
		_, _ = h.expire(dir, h.keep)
	}
}
