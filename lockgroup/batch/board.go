package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// board is what hosts tell each other of chunks, in one byte for each chunk of the schedule
// and one before them, whatever the number of hosts. It saves requests, and decides nothing:
// what it does not tell is learned under the locks.
type board struct {
	source.Board

	mu    sync.Mutex
	seen  []byte
	asked time.Time // when the first byte was last seen to change
	read  time.Time
}

const (
	// chunkDone is the byte of a chunk whose jobs have all succeeded, those that were given
	// back as well, and of whose output nothing is missing. Any other but 0 changes when there
	// is something new to be read.
	chunkDone = 1
	// boardFresh is the age up to which what was read is not read again before a claim.
	boardFresh = 250 * time.Millisecond
)

// openBoard also finds out what was done before: of chunks that are not done as far as the
// board knows, the results tell.
func (b *Batch) openBoard(ctx context.Context) error {
	opened, err := bounded.Call(ctx, b.chunks.OpenBoard)
	if err != nil {
		return err
	}
	b.board = &board{Board: opened, seen: make([]byte, 1+len(b.hands.units))}
	known, err := b.board.news(ctx)
	if err != nil {
		return err
	}
	names, err := bounded.Call(ctx, b.src.Results)
	if err != nil {
		return err
	}
	recorded := map[source.Range]bool{}
	for _, name := range names {
		if r, ok := joblist.ParseChunkName(name); ok {
			recorded[r] = true
		}
	}
	for _, k := range known {
		if recorded[b.unit(k).Range] { // nobody has taken it back since
			b.believe(k)
		}
	}
	for units := b.among(recorded); len(units) > 0 && err == nil; units = b.among(recorded) {
		err = b.readUnits(ctx, units)
	}
	return err
}

// among takes the units of these ranges, unless they are known to be final. What was given
// back comes after that of which it was.
func (b *Batch) among(recorded map[source.Range]bool) (units []int) {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	for i := range b.hands.units {
		u := &b.hands.units[i]
		if recorded[u.Range] && u.state != unitFinal {
			units = append(units, i)
		}
		delete(recorded, u.Range)
	}
	return units
}

// news are the chunks of the schedule of which there is something new on the board.
func (n *board) news(ctx context.Context) (changed []int, err error) {
	now, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return n.Read(ctx, len(n.seen)) })
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = time.Now()
	for at, value := range now {
		if value == n.seen[at] {
			continue
		}
		if n.seen[at] = value; at == 0 {
			n.asked = n.read
		} else {
			changed = append(changed, at-1)
		}
	}
	return changed, nil
}

func (n *board) age() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.read)
}

// tell writes that there is something new about a chunk.
func (n *board) tell(ctx context.Context, root int) error {
	return n.write(ctx, 1+root, func(last byte) byte { return max(last+1, chunkDone+1) })
}

// confirm writes that a chunk is done, if sure says so. This process may stand still before the
// byte is written: who forgets a result drops the board, and the byte with it.
func (n *board) confirm(ctx context.Context, root int, sure func(context.Context) bool) error {
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, n.Confirm(ctx, 1+root, chunkDone, sure)
	})
	return err
}

// saysDone is what was last read of a chunk.
func (n *board) saysDone(root int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[1+root] == chunkDone
}

func (n *board) write(ctx context.Context, at int, next func(last byte) byte) error {
	n.mu.Lock()
	n.seen[at] = next(n.seen[at])
	value := n.seen[at]
	n.mu.Unlock()
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Write(ctx, at, value) })
	return err
}

// believe settles a chunk of the schedule that is done, and reports false if the results
// have to be read.
func (b *Batch) believe(root int) bool {
	done := b.board.saysDone(root)
	if done {
		b.hands.change(func() {
			for job := b.hands.units[root].From - 1; job < b.hands.units[root].To; job++ {
				b.settle(job, multilock.Result{})
			}
			b.hands.finish(root)
		})
	}
	return done
}

// hear reads the board, and some of what it says is to be read: all of it would be too much
// where many hosts have much to tell; unless a job of theirs may end the batch. It reports
// whether another chunk is done.
func (b *Batch) hear(ctx context.Context) (progress bool) {
	changed, err := b.board.news(ctx)
	b.note(err)
	changed = slices.DeleteFunc(changed, b.believe)
	var read []int
	b.hands.change(func() {
		for _, root := range changed {
			b.unread[root] = true
		}
		for root := range b.unread { // in no order
			if b.opt.Halt.When == HaltNever && len(read) == mostRead {
				break
			}
			if delete(b.unread, root); b.hands.units[root].state != unitFinal {
				read = append(read, root)
			}
		}
	})
	b.note(b.readUnits(ctx, read))
	b.halt()
	return b.anyFinal(read)
}

func (b *Batch) anyFinal(units []int) bool {
	return slices.ContainsFunc(units, func(i int) bool { return b.unit(i).state == unitFinal })
}

// mostRead is how many results are read with one reading of the board.
const mostRead = 4

// hearOfParts reads how some of what was given back stands that others have, and reports
// whether any of it is done. All would be too much where many wait for many.
func (b *Batch) hearOfParts(ctx context.Context) (progress bool) {
	parts := b.othersParts()
	if len(parts) == 0 {
		return false
	}
	parts = slices.DeleteFunc(parts, func(i int) bool {
		u := b.unit(i)
		return !b.recorded.has(ctx, b.src, b.name(&u))
	})
	parts = parts[:min(len(parts), mostRead)]
	b.note(b.readUnits(ctx, parts))
	return b.anyFinal(parts)
}

// othersParts are those parts that others have, or, as far as a busy host knows, may have, in
// no order.
func (b *Batch) othersParts() (parts []int) {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	for _, i := range b.hands.parts {
		if state := b.hands.units[i].state; state == unitElsewhere || state == unitOpen && b.hands.gate.busy != "" {
			parts = append(parts, i)
		}
	}
	return parts
}

// readUnits reads what is recorded of units.
func (b *Batch) readUnits(ctx context.Context, units []int) error {
	return parallel.Do(parallel.Requests, len(units), func(k int) error { return b.readUnit(ctx, units[k]) })
}

// giveBack gives back half of what will not be begun here soon, because somebody has nothing
// to do: the others who have too much do the same, and if it was too little he asks again.
func (b *Batch) giveBack() {
	b.hands.change(func() {
		if b.hands.gate.busy != "" {
			b.giveAllBack()
			return
		}
		for n := (b.hands.surplus() + 1) / 2; n > 0; n-- {
			t := b.hands.ready[len(b.hands.ready)-1]
			if _, tried := b.lastOf(t.holding, t.job); tried {
				return
			}
			b.hands.ready = b.hands.ready[:len(b.hands.ready)-1]
			t.holding.waiting--
			t.holding.giveBack(t.job+1, &b.hands.units[t.holding.unit])
		}
	})
}

// soon is the time within which a job is begun that is kept.
const soon = 5 * time.Second

// surplus is how many jobs are ready that will not be begun soon.
func (h *hands) surplus() int {
	if h.gate.busy != "" {
		return len(h.ready)
	}
	return max(0, len(h.ready)-int(soon*time.Duration(h.running+h.wanting())/max(h.took(), 1)))
}

// partsShare: what is given back is divided among so many.
const partsShare = 8

// giveBack adds a job to what is given back of a holding: to the last part, if that is
// next to it and not large. A unit as a whole is given back with its lock: as a part it
// would have the name that it has.
func (h *holding) giveBack(number int, of *unit) {
	h.urgent = true
	if len(h.fresh)+len(h.parts) == 0 {
		h.since = time.Now()
	}
	if last := len(h.parts) - 1; last >= 0 && h.parts[last].From == number+1 && h.parts[last].length() < maxChunk/partsShare {
		h.parts[last].From = number
	} else {
		h.parts = append(h.parts, unit{Range: source.Range{From: number, To: number}, of: of.Range, root: of.root, fence: h.fence})
	}
	if h.parts[0].Range == of.Range {
		h.parts = nil
	}
}

// readUnit reads what is recorded of a unit, if anything is.
func (b *Batch) readUnit(ctx context.Context, i int) error {
	u := b.unit(i)
	return b.readResult(ctx, i, b.name(&u))
}

func (b *Batch) readResult(ctx context.Context, i int, name string) error {
	r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return b.src.Result(ctx, name) })
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return nil
	case err != nil:
		return err
	}
	b.absorb(i, r)
	return nil
}

const (
	// boardEvery is how often the board is looked at, at the most, where what others do
	// decides what is done here: they may have nothing to do, or a job of theirs may end
	// the batch. It is looked at less often where few jobs end here meanwhile.
	boardEvery = 2 * time.Second
	boardJobs  = 16
	// boardUnasked is how often it is looked at in any case, for the progress; less often
	// where a job takes long, and at least every boardAnyway.
	boardUnasked = 10 * time.Second
	boardAnyway  = time.Minute
	// progressEvery is how often the others are told of a chunk that is not over.
	progressEvery = time.Minute
)

// followBoard looks at the board until the channel is closed.
func (b *Batch) followBoard(ctx context.Context, ended <-chan struct{}) {
	ticks := time.NewTicker(boardEvery)
	defer ticks.Stop()
	var served time.Time
	for {
		select {
		case <-ended:
			_, err := bounded.Call(ctx, func(context.Context) (struct{}, error) { return struct{}{}, b.board.Close() })
			b.note(err)
			return
		case <-ticks.C:
		}
		if b.board.age() < b.boardPause() {
			continue
		}
		b.hear(ctx)
		if asked := b.board.lastAsked(); asked != served {
			served = asked
			b.giveBack()
		}
	}
}

// boardPause is for how long what was read of the board will do.
func (b *Batch) boardPause() time.Duration {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	switch {
	case b.opt.Halt.When != HaltNever:
		return 0
	case b.hands.surplus() > 0:
		return min(boardJobs*b.hands.jobTime.value/time.Duration(b.opt.Workers), boardUnasked)
	}
	return max(boardUnasked, min(b.hands.jobTime.value/boardJobs, boardAnyway))
}

func (n *board) lastAsked() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// ask tells the others that there is nothing to do here, unless somebody has just done so.
func (b *Batch) ask(ctx context.Context) {
	if time.Since(b.board.lastAsked()) > boardEvery {
		b.note(b.board.write(ctx, 0, func(last byte) byte { return last + 1 }))
	}
}

// announce tells the others what was recorded of a chunk that this process holds.
func (b *Batch) announce(h *holding) {
	if b.chunks == nil {
		return
	}
	ctx, cancel := b.lastNews()
	defer cancel()
	u := b.unit(h.unit)
	switch {
	case u.Range != b.unit(u.root).Range:
	case len(h.last.Chunk.Returned) == 0 && succeeded(h.last):
		b.note(b.board.confirm(ctx, u.root, func(ctx context.Context) bool { return h.lock.Verify(ctx) == nil }))
	default:
		b.note(b.board.tell(ctx, u.root))
	}
	event := source.CommittedEvent(h.last, time.Now())
	b.note(b.recordEvents(ctx, []source.Event{event}))
}

func (b *Batch) lastNews() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(b.working), lastNewsPatience)
}
