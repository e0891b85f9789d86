package grouptest

import (
	"context"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ChunkVenue is a Venue that keeps chunks.
type ChunkVenue struct {
	*Venue
	board   []byte
	dropped int
}

var _ source.Chunks = (*ChunkVenue)(nil)

func NewChunkVenue() *ChunkVenue { return &ChunkVenue{Venue: NewVenue()} }

func (v *ChunkVenue) Summary(ctx context.Context, name string) (multilock.Result, error) {
	return v.Result(ctx, name)
}

func (v *ChunkVenue) Current(ctx context.Context, name string) (multilock.Result, error) {
	return v.Result(ctx, name)
}

func (v *ChunkVenue) OpenProgressMap(context.Context) (source.ProgressMap, error) {
	return (*venueProgress)(v), v.Enter("open board")
}

func (v *ChunkVenue) DropProgressMap(context.Context) error {
	v.Mu.Lock()
	defer v.Mu.Unlock()
	v.board = nil
	v.dropped++
	return nil
}

type venueProgress ChunkVenue

func (b *venueProgress) Read(_ context.Context, size int) ([]byte, error) {
	err := b.Enter("read board")
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return append([]byte(nil), b.board[:min(size, len(b.board))]...), err
}

func (b *venueProgress) Write(ctx context.Context, at int, value byte) error {
	return b.Confirm(ctx, at, value, func(context.Context) bool { return true })
}

func (b *venueProgress) Confirm(ctx context.Context, at int, value byte, sure func(context.Context) bool) error {
	b.Mu.Lock()
	dropped := b.dropped
	b.Mu.Unlock()
	if !sure(ctx) {
		return nil
	}
	err := b.Enter("write board")
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.dropped != dropped {
		return err
	}
	for len(b.board) <= at {
		b.board = append(b.board, 0)
	}
	b.board[at] = value
	return err
}

func (b *venueProgress) Close() error { return nil }
