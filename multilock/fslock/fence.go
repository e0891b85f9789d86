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
// The holder appends one byte to BASE/.multilock/groups/GROUP/fence/NAME, reads the size through the same
// descriptor, and then verifies that it still holds the lock. A write never shrinks a file. A holder that
// was suspended, and writes after it lost the lock, can only skip a number, or on NFS overwrite a byte,
// because NFS clients choose the offset of an append themselves. (Setting the size would allocate no block,
// but it could lower the number.) Each holder verifies the lock after its write, and a later holder writes
// later, so the numbers grow. The check includes that the lock is in its place: a lock that was moved, or
// that its server has lost, looks intact, but another one may exist. The write is on stable storage before
// the number is used.
func (l *lease) Fence(context.Context) (uint64, error) {
	if err := l.use(); err != nil {
		return 0, err
	}
	defer l.leave()
	l.drawing.Lock() // two concurrent reads of the size would return the same number
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

// maxFence is a size that draws cannot reach: a thousand per second would take thirty years.
const maxFence = 1 << 40

// errTooLarge is for a counter file that was extended without draws.
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
// It asks the server for the size first, although the file was opened just now: while a holder that was
// stopped before its write has the file open on this host, an NFS client appends at the size that it has
// cached. After the write, an NFS client knows the size. On any other file system the size is asked for
// again, because its server chose the offset; GlusterFS reports a size late.
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
