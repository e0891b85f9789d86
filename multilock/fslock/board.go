package fslock

import (
	"context"
	"errors"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The board is the file "board" beside the list, in the directory of the manifest: it goes
// with that, and who is still at work on a list that was retracted finds no other's. Each
// byte is written by itself, with a write that goes to the server as it is: so hosts do not
// overwrite what others wrote beside it, which pages written back from a cache would.

var _ source.Chunks = (*Source)(nil)

// OpenBoard implements source.Chunks.
func (s *Source) OpenBoard(context.Context) (source.Board, error) {
	manifest, err := s.findGroupPrivate(manifestDir)
	if err != nil {
		return nil, opError("open the board", "", err)
	}
	return &board{dir: manifest}, nil
}

// DropBoard implements source.Chunks. Who has it open finds the next one.
func (s *Source) DropBoard(context.Context) error {
	manifest, err := s.findGroupPrivate(manifestDir)
	if err != nil {
		return boardError("open", err)
	}
	defer manifest.Close() //nolint:errcheck // a directory
	return boardError("remove", manifest.Unlink(boardFile))
}

type board struct {
	dir vfs.Dir // that of the manifest

	mu     bounded.Turn // held during each call: one that hangs may come back after the end
	out    vfs.File     // nil until something is written
	closed bool
}

// Read implements source.Board. The file is opened anew, which makes an NFS client ask
// whether it has changed.
func (b *board) Read(_ context.Context, size int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil
	}
	data, err := readAll(b.dir, boardFile, size-1)
	return data[:min(len(data), size)], boardError("read", err)
}

// Write implements source.Board.
func (b *board) Write(ctx context.Context, at int, value byte) error {
	return b.Confirm(ctx, at, value, func(context.Context) bool { return true })
}

// Confirm implements source.Board. A file that somebody has removed meanwhile is no board any
// more: on the next one it is written if sure says so again.
func (b *board) Confirm(ctx context.Context, at int, value byte, sure func(context.Context) bool) error {
	for range shareddir.Rounds() {
		out, err := b.opened()
		if err != nil || out == nil || !sure(ctx) {
			return boardError("write to", err)
		}
		current, err := b.write(out, at, value)
		if err != nil || current {
			return boardError("write to", err)
		}
	}
	return nil // it is removed all the time, by those for whom nothing on it is true
}

// opened is the file to write to; nil after the end.
func (b *board) opened() (_ vfs.File, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.out == nil && !b.closed {
		b.out, err = b.dir.OpenDurable(boardFile, shareddir.AppendMode)
	}
	return b.out, err
}

func (b *board) write(out vfs.File, at int, value byte) (current bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.out != out {
		return b.closed, nil
	}
	_, err = b.out.WriteAt([]byte{value}, int64(at))
	if info, failed := b.out.StatCached(); err == nil && failed == nil && info.Links > 0 {
		return true, nil
	}
	err = errors.Join(ignoreGone(err), ignoreGone(b.out.Close()))
	b.out = nil
	return false, err
}

// boardError passes over that there is none.
func boardError(op string, err error) error {
	if err == nil || gone(err) {
		return nil
	}
	return opError(op+" the board", "", err)
}

// Close implements source.Board.
func (b *board) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.out != nil {
		_ = b.out.Close() // each byte was written for good
		b.out = nil
	}
	return b.dir.Close()
}
