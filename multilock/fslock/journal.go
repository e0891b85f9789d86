package fslock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

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
		if err := appendEvents(dir, file, events[:n]); err != nil {
			return opError("write the history", events[0].Name, err)
		}
		events = events[n:]
	}
	return nil
}

// appendEvents adds the events to a file with one write: other processes of this
// host append to it, too.
func appendEvents(dir vfs.Dir, file string, events []source.Event) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, e := range events {
		e.Time = e.Time.UTC()
		if err := encoder.Encode(e.Bounded()); err != nil {
			return err
		}
	}
	f, err := dir.OpenAppend(file, shareddir.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(lines.Bytes())
	return errors.Join(err, f.Close())
}

// LogPath is where the output of a name's job is kept, for whoever runs the jobs
// of the group. The directory may have to be made.
func (s *Source) LogPath(name string) string {
	return filepath.Join(s.base.Path(), shareddir.PrivateDir, groupsDir, s.group, logsDir, name+logSuffix)
}
