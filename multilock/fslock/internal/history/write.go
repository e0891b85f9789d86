// Package history keeps the history of a group: one file of JSON lines for each host, boot and day,
// BASE/.multilock/groups/GROUP/history/DAY.HOST.BOOT.jsonl. Only one kernel appends to a file, because
// appending from two NFS clients loses lines.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	dirName       = "history"
	historySuffix = ".jsonl"
)

// Journal is the history of a group.
type Journal struct {
	// ReadMost is how many bytes of it one call reads.
	ReadMost int64

	files groupfiles.Files
	self  process.Identity
	keep  time.Duration
	dir   *shareddir.Dir
}

// New prepares to use a group's history. A process that begins the file of a day removes those of
// days that ended longer ago than keep, unless keep is negative.
func New(files groupfiles.Files, self process.Identity, keep time.Duration) *Journal {
	h := &Journal{ReadMost: maxHistory, files: files, self: self, keep: keep}
	h.dir = shareddir.NewDir(func(open shareddir.Opener) (vfs.Dir, error) { return files.Make(dirName, open) })
	return h
}

// Close frees the history's descriptors.
func (h *Journal) Close() { h.dir.Close() }

// Append writes an event to the group's history.
func (h *Journal) Append(ctx context.Context, e source.Event) error {
	return h.Record(ctx, []source.Event{e})
}

func (h *Journal) historyFile(at time.Time) string {
	boot := h.self.Boot
	if len(boot) > 8 {
		boot = boot[:8]
	}
	host := strings.ReplaceAll(source.Shorten(h.self.Host, 64), "/", "_")
	return at.UTC().Format(time.DateOnly) + "." + host + "." + boot + historySuffix
}

// endsBefore reports whether the day of a file ended before a time.
func endsBefore(name string, moment time.Time) bool {
	day, _, _ := strings.Cut(name, ".")
	date, err := time.Parse(time.DateOnly, day)
	return err == nil && date.AddDate(0, 0, 1).Before(moment)
}

// Record implements source.Journal. It opens the file for each call, because an NFS client sends
// writes to the server on close, and only then can other hosts see them.
func (h *Journal) Record(_ context.Context, events []source.Event) error {
	if len(events) == 0 {
		return nil
	}
	for len(events) > 0 {
		file := h.historyFile(events[0].Time)
		n := 1
		for n < len(events) && h.historyFile(events[n].Time) == file {
			n++
		}
		if err := h.record(file, events[:n]); err != nil {
			return shareddir.OpError("write the history", events[0].Name, err)
		}
		events = events[n:]
	}
	return nil
}

// record adds the events of one day.
func (h *Journal) record(file string, events []source.Event) error {
	dir, f, err := groupfiles.OpenIn(h.dir, func(dir vfs.Dir) (vfs.File, error) { return dir.OpenAppend(file, shareddir.AppendMode) })
	if err != nil {
		return err
	}
	defer h.dir.Done(dir)
	begun, err := appendEvents(f, events)
	if err == nil && begun && file == h.historyFile(time.Now()) { //nolint:forbidigo // a day, not a duration
		h.shorten(dir)
	}
	return err
}

// appendEvents appends the events with one write, because other processes of this host append to the
// file, too, and closes it. begun means that they are the first in the file.
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
