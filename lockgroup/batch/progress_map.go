package batch

import (
	"context"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// progressMap shows hosts which chunks have changed, with one byte for each chunk of the schedule and
// one before them, for any number of hosts. It only saves requests: the locks decide.
type progressMap struct {
	source.ProgressMap // nil if the source keeps none: see changedResults

	mu    sync.Mutex
	seen  []byte
	asked time.Time // when an idle host last asked for jobs
	read  time.Time
	took  time.Duration // how long the last read took
}

const (
	// chunkDone is the byte of a chunk whose jobs have all succeeded, with complete output, including
	// the parts that were given back. Any other byte but 0 changes when there is something to read.
	chunkDone = 1
	// mapFresh is the age up to which a claim does not read the map again, or mapShare times the
	// duration of a read if that is longer.
	mapFresh = 250 * time.Millisecond
	mapShare = 20
)

// absent reports whether the source keeps no map.
func (p *progressMap) absent() bool { return p.ProgressMap == nil }

// updates returns the chunks of the schedule whose byte has changed.
func (p *progressMap) updates(ctx context.Context) (changed []int, err error) {
	start := time.Now()
	now, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return p.Read(ctx, len(p.seen)) })
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wasRead(start)
	for at, value := range now {
		if value == p.seen[at] {
			continue
		}
		if p.seen[at] = value; at == 0 {
			p.asked = p.read
		} else {
			changed = append(changed, at-1)
		}
	}
	return changed, nil
}

// wasRead records when the map was read. The caller holds the mutex.
func (p *progressMap) wasRead(start time.Time) { p.read, p.took = time.Now(), time.Since(start) }

// isFresh reports whether the map was read so recently that another read would not pay.
func (p *progressMap) isFresh() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.read) < max(mapFresh, mapShare*p.took)
}

func (p *progressMap) age() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.read)
}

// markChanged marks a chunk as changed.
func (p *progressMap) markChanged(ctx context.Context, root int) error {
	return p.write(ctx, 1+root, func(last byte) byte { return max(last+1, chunkDone+1) })
}

// confirm marks a chunk as done if sure returns true. A process that deletes a result before the byte
// is written drops the map and the byte with it.
func (p *progressMap) confirm(ctx context.Context, root int, sure func(context.Context) bool) error {
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.Confirm(ctx, 1+root, chunkDone, sure)
	})
	return err
}

// saysDone reports whether a chunk was done when the map was last read.
func (p *progressMap) saysDone(root int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[1+root] == chunkDone
}

func (p *progressMap) write(ctx context.Context, at int, next func(last byte) byte) error {
	if p.absent() {
		return nil
	}
	p.mu.Lock()
	p.seen[at] = next(p.seen[at])
	value := p.seen[at]
	p.mu.Unlock()
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Write(ctx, at, value) })
	return err
}

// close closes the map, unless a call to it hangs.
func (p *progressMap) close(ctx context.Context) error {
	if p.absent() {
		return nil
	}
	_, err := bounded.Call(ctx, func(context.Context) (struct{}, error) { return struct{}{}, p.Close() })
	return err
}

func (p *progressMap) lastAsked() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}
