package grouptest

import (
	"context"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ChunkVenue is a Venue that keeps chunks.
type ChunkVenue struct {
	*Venue
	board []byte
}

var _ source.Chunks = (*ChunkVenue)(nil)

func NewChunkVenue() *ChunkVenue { return &ChunkVenue{Venue: NewVenue()} }

func (v *ChunkVenue) Summary(ctx context.Context, name string) (multilock.Result, error) {
	return v.Result(ctx, name)
}

func (v *ChunkVenue) Current(ctx context.Context, name string) (multilock.Result, error) {
	return v.Result(ctx, name)
}

func (v *ChunkVenue) OpenBoard(context.Context) (source.Board, error) {
	return (*venueBoard)(v), v.Enter("open board")
}

func (v *ChunkVenue) DropBoard(context.Context) error {
	v.Mu.Lock()
	defer v.Mu.Unlock()
	v.board = nil
	return nil
}

type venueBoard ChunkVenue

func (b *venueBoard) Read(_ context.Context, size int) ([]byte, error) {
	err := b.Enter("read board")
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return append([]byte(nil), b.board[:min(size, len(b.board))]...), err
}

func (b *venueBoard) Write(_ context.Context, at int, value byte) error {
	err := b.Enter("write board")
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for len(b.board) <= at {
		b.board = append(b.board, 0)
	}
	b.board[at] = value
	return err
}

func (b *venueBoard) Close() error { return nil }
