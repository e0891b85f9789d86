package history

import (
	"context"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// follower reads the files of a history as they grow. They stay open between two polls, so that a file
// that has not grown costs one request. If there are many, a file is open only while it is read.
type follower struct {
	history *Journal
	since   time.Time
	dir     vfs.Dir
	files   map[string]*followed
	once    groupfiles.Once
	ready   []*followed // files to read in this poll
	left    []error     // about files that are left out, not returned yet
	crowded bool        // it was reported that there are too many files
	brief   bool        // there are too many files to keep open
}

// Follow implements source.Journal.
func (h *Journal) Follow(since time.Time) source.Follower { return h.follow(since) }

func (h *Journal) follow(since time.Time) *follower {
	return &follower{history: h, since: since, files: map[string]*followed{}, once: groupfiles.Once{}}
}

// Next implements source.Follower. A poll lists the directory and checks each file once. This and
// later calls read what it found in pieces.
func (f *follower) Next(context.Context) ([]source.Event, error) {
	for polled := false; len(f.ready)+len(f.left) > 0 || !polled; {
		var events []source.Event
		var err error
		switch {
		case len(f.left) > 0:
			err, f.left = f.left[0], f.left[1:]
			return nil, err
		case len(f.ready) > 0:
			events, err = f.chunk()
		default:
			polled, err = true, f.poll()
		}
		if err != nil {
			return nil, shareddir.OpError("follow the history", "", err)
		}
		if len(events) > 0 {
			return events, nil
		}
	}
	return nil, nil
}

// chunk reads the next piece of a file that has grown.
func (f *follower) chunk() ([]source.Event, error) {
	file := f.ready[0]
	events, more, err := f.read(file)
	if !more {
		f.ready = f.ready[1:]
		f.suspend(file)
	}
	if leftOut(err) {
		f.leave(file, err)
		err = nil
	}
	return events, groupfiles.IgnoreGone(err)
}

func (f *follower) read(file *followed) ([]source.Event, bool, error) {
	if file.File == nil {
		if err := file.open(f.once, f.dir); err != nil {
			return nil, false, err
		}
	}
	return file.next(f.since)
}

func (f *follower) suspend(file *followed) {
	if f.brief {
		file.suspend()
	}
}

// leave stops reading a file, and reports that once.
func (f *follower) leave(file *followed, why error) {
	file.end()
	f.left = append(f.left, file.leftOut(why))
}

// poll finds the files that have grown.
func (f *follower) poll() error {
	if err := f.open(); err != nil {
		return groupfiles.IgnoreGone(err)
	}
	info, err := f.dir.Stat() // makes an NFS client list a changed directory again
	if err == nil && info.Links == 0 {
		err = syscall.ESTALE
	}
	if err != nil {
		return f.drop(err)
	}
	names, err := historyFiles(f.dir, f.since)
	if err != nil {
		return f.drop(err)
	}
	names, left := fewest(f.dir, names)
	if left != nil && !f.crowded {
		f.crowded, f.left = true, append(f.left, left)
	}
	f.brief = len(names) > maxHistoryOpen
	for _, name := range names {
		if err := f.check(name); err != nil && !vfs.Gone(err) {
			return err
		}
	}
	return nil
}

func (f *follower) open() error {
	if f.dir != nil {
		return nil
	}
	dir, err := f.history.files.Find(dirName)
	if err == nil {
		f.dir = dir
	}
	return err
}

// drop closes a directory that was removed.
func (f *follower) drop(err error) error {
	if !vfs.Gone(err) {
		return err
	}
	_ = f.Close()
	return nil
}

// check queues a file that has grown. It gets the size from the server, which makes an NFS client
// drop its cached end of the file.
func (f *follower) check(name string) error {
	if file := f.files[name]; file != nil {
		if present, err := f.grown(file); present || err != nil {
			return err
		}
		file.close() // it was removed; there may be a new file with its name
		delete(f.files, name)
	}
	file, err := f.take(name)
	if err != nil {
		return err
	}
	f.files[name] = file
	_, err = f.grown(file)
	return err
}

// take opens a new file, or leaves it out.
func (f *follower) take(name string) (*followed, error) {
	file := newFollowed(f.dir, name)
	err := file.open(f.once, f.dir)
	if leftOut(err) {
		f.leave(file, err)
		err = nil
	}
	return file, err
}

// grown returns false for a file that was removed.
func (f *follower) grown(file *followed) (present bool, err error) {
	if file.over {
		return true, nil
	}
	info, err := f.describe(file)
	if err != nil || info.Links == 0 {
		return false, groupfiles.IgnoreGone(err)
	}
	if info.Size > file.read {
		f.ready = append(f.ready, file)
	}
	return true, nil
}

func (f *follower) describe(file *followed) (vfs.Info, error) {
	if file.File != nil {
		defer f.suspend(file)
		return file.Stat()
	}
	info, err := f.dir.StatName(file.name)
	if err == nil && info.Size < file.read {
		err = syscall.ENOENT // this is another file with its name
	}
	return info, err
}

// Close implements source.Follower.
func (f *follower) Close() error {
	var err error
	for _, file := range f.files {
		file.close()
	}
	if f.dir != nil {
		err = f.dir.Close()
	}
	f.files, f.ready, f.dir = map[string]*followed{}, nil, nil
	return err
}
