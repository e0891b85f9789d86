package fslock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// follower reads the files of a history. They stay open between two polls, so that
// each is read on from where it ended, at the price of one request if it has not
// grown.
type follower struct {
	src   *Source
	since time.Time
	dir   vfs.Dir
	files map[string]*followed
	ready []*followed // those still to be read in this poll
}

// followed is one file of a history.
type followed struct {
	vfs.File
	read int64
	rest []byte // the beginning of a line whose end was not there yet
}

// Follow implements source.Journal.
func (s *Source) Follow(since time.Time) source.Follower { return s.follow(since) }

func (s *Source) follow(since time.Time) *follower {
	return &follower{src: s, since: since, files: map[string]*followed{}}
}

// followChunk bounds what is read at a time, and with it the memory for events.
const followChunk = 256 << 10

// Next implements source.Follower. A poll lists the directory and looks at
// every file once; what it finds is read in chunks, by this and further calls.
func (f *follower) Next(context.Context) ([]source.Event, error) {
	for polled := false; len(f.ready) > 0 || !polled; {
		var events []source.Event
		var err error
		if len(f.ready) > 0 {
			events, err = f.chunk()
		} else {
			polled, err = true, f.poll()
		}
		if err != nil {
			return nil, opError("follow the history", "", err)
		}
		if len(events) > 0 {
			return events, nil
		}
	}
	return nil, nil
}

// chunk reads on in a file that has grown.
func (f *follower) chunk() ([]source.Event, error) {
	events, more, err := f.ready[0].next(f.since)
	if err != nil && !gone(err) {
		return nil, err
	}
	if !more || err != nil {
		f.ready = f.ready[1:]
	}
	return events, nil
}

// poll finds the files that have grown.
func (f *follower) poll() error {
	if err := f.open(); err != nil {
		return ignoreGone(err)
	}
	info, err := f.dir.Stat() // and an NFS client lists anew what has changed
	if err == nil && info.Links == 0 {
		err = syscall.ESTALE
	}
	if err != nil {
		return f.drop(err)
	}
	names, err := f.dir.List()
	if err != nil {
		return f.drop(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, historySuffix) || endsBefore(name, f.since) {
			continue
		}
		if err := f.check(name); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

func (f *follower) open() error {
	if f.dir != nil {
		return nil
	}
	dir, err := f.src.findGroupPrivate(historyDir)
	if err == nil {
		f.dir = dir
	}
	return err
}

// drop gives up a directory that has been removed.
func (f *follower) drop(err error) error {
	if !gone(err) {
		return err
	}
	_ = f.dir.Close()
	f.dir = nil
	return nil
}

// check puts a file that has grown among those to be read. Its size is the
// server's, which makes an NFS client forget what it knew of the file's end.
func (f *follower) check(name string) error {
	if file := f.files[name]; file != nil {
		if present, err := f.grown(file); present || err != nil {
			return err
		}
		_ = file.Close() // it was removed, and there may be another of its name
		delete(f.files, name)
	}
	opened, err := f.dir.Open(name)
	if err != nil {
		return err
	}
	file := &followed{File: opened}
	f.files[name] = file
	_, err = f.grown(file)
	return err
}

// grown reports false for a file that has no name any more.
func (f *follower) grown(file *followed) (present bool, err error) {
	info, err := file.Stat()
	if err != nil || info.Links == 0 {
		return false, ignoreGone(err)
	}
	if info.Size > file.read {
		f.ready = append(f.ready, file)
	}
	return true, nil
}

// next reads one chunk, and says whether there may be more.
func (f *followed) next(since time.Time) (events []source.Event, more bool, err error) {
	chunk := make([]byte, followChunk)
	n, err := f.Read(chunk)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	f.read += int64(n)
	data := append(f.rest, chunk[:n]...)
	end := bytes.LastIndexByte(data, '\n') + 1
	f.rest = bytes.Clone(data[end:])
	if len(f.rest) > followChunk {
		f.rest = nil // no line of ours
	}
	return eventsIn(data[:end], since), n > 0 && err == nil, nil
}

// eventsIn are the events that can be read in lines of a history.
func eventsIn(lines []byte, since time.Time) (events []source.Event) {
	for line := range bytes.Lines(lines) {
		var e source.Event
		if json.Unmarshal(line, &e) == nil && !e.Time.Before(since) {
			events = append(events, e)
		}
	}
	return events
}

// Close implements source.Follower.
func (f *follower) Close() error {
	var err error
	for _, file := range f.files {
		err = errors.Join(err, file.Close())
	}
	if f.dir != nil {
		err = errors.Join(err, f.dir.Close())
	}
	f.files, f.ready, f.dir = map[string]*followed{}, nil, nil
	return err
}
