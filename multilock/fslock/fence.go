package fslock

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Fence implements source.Lease: the number is the size of a file.
//
// The holder appends one byte to BASE/.multilock/groups/GROUP/fence/NAME, reads the size
// through the same descriptor, and then verifies that it still holds the lock. A write
// never shrinks a file: a holder that was suspended, and writes after it lost the lock,
// can only skip a number, or repeat a byte on NFS, whose clients choose the place of an
// append themselves (setting the size, which would need no block, could take numbers
// back). Whoever gets a number verified the lock after the write, and whoever holds the
// lock later writes later: so the numbers grow. It is verified that the lock is in
// its place, too: one that was moved, or that its server has forgotten, is whole, but
// there may be another. The write is on stable storage before the number is used.
func (l *lease) Fence(context.Context) (uint64, error) {
	if err := l.use(); err != nil {
		return 0, err
	}
	defer l.leave()
	l.drawing.Lock() // two that read the size at the same time would get one number
	defer l.drawing.Unlock()
	number, err := l.src.bump(l.record.Name)
	if err != nil {
		return 0, opError("draw a fence number", l.record.Name, err)
	}
	if l.whole() {
		return number, nil
	}
	if err := l.inPlace(); err != nil {
		return 0, err
	}
	return number, nil
}

func (s *Source) bump(name string) (uint64, error) {
	dir, f, err := groupfiles.OpenIn(s.fences, func(dir vfs.Dir) (vfs.File, error) { return dir.OpenAppendDurable(name, shareddir.AppendMode) })
	if err != nil {
		return 0, err
	}
	defer s.fences.Done(dir)
	number, err := s.appendByte(f)
	if errors.Is(err, errTooLarge) {
		err = s.absurd(name, err)
	}
	return number, errors.Join(err, f.Close())
}

// maxFence is a size that no draws can have brought about: a thousand in each second took
// thirty years for it.
const maxFence = 1 << 40

// errTooLarge is for a counter that somebody has made so long, without its bytes.
var errTooLarge = errors.New("it cannot have been drawn so often")

func (s *Source) absurd(name string, err error) error {
	path := filepath.Join(s.base.Path(), shareddir.PrivateDir, groupfiles.Root, s.group, fenceDir, name)
	return &source.InvalidError{
		What: "fencing number", Got: path, Err: err,
		Why: "the file is longer than any number of draws can have made it; find the largest number that was drawn (multilock history --json " + name +
			"), and make the file as long as that: truncate -s NUMBER FILE",
	}
}

// appendByte makes the file one byte longer and returns its size.
//
// The server is asked for that before, though the file was opened just now: as long as a
// holder that was stopped before its write has it open on this host, an NFS client goes by
// what it knows, and appends there. Afterwards it knows the size by its own write. Any other
// file system is asked again, for its server has found the end: GlusterFS tells a size late.
func (s *Source) appendByte(f vfs.File) (uint64, error) {
	before, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if before.Size >= maxFence {
		return 0, errTooLarge
	}
	if _, err := f.Write([]byte{'.'}); err != nil {
		return 0, err
	}
	size := f.Stat
	if s.base.Kind.NFS {
		size = f.StatCached
	}
	after, err := size()
	if err == nil && after.Size <= before.Size {
		err = errNoGrowth
	}
	return uint64(after.Size), err //nolint:gosec // a size is not negative
}

// errNoGrowth is for a file system that does not show what was written to it.
var errNoGrowth = errors.New("the file is not longer after a byte was appended to it; this file system cannot give fencing numbers")

var _ source.Lease = (*lease)(nil)
