package batch

import "time"

// throttle limits how many jobs begin. It lets none begin while this host is busy, and then one, a
// second later two, then four: load shows only after jobs start.
type throttle struct {
	busy   string // why no job may begin
	guards bool   // Options.Busy is set
	width  int    // how many may begin between two checks
	left   int
}

// throttleEvery is the pause between two calls of Options.Busy.
const throttleEvery = time.Second

const widestThrottle = 1 << 20

func (g *throttle) open() bool { return !g.guards || g.left > 0 }

func (g *throttle) pass() { g.left-- }

// answered applies an answer of Options.Busy.
func (g *throttle) answered(busy string) {
	g.guards, g.busy = true, busy
	if busy != "" {
		g.width = 0
	} else {
		g.width = min(max(2*g.width, 1), widestThrottle)
	}
	g.left = g.width
}

// keepThrottle calls Options.Busy periodically until the channel is closed.
func (b *Batch) keepThrottle(ended <-chan struct{}) {
	ticks := time.NewTicker(throttleEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticks.C:
		}
		b.askBusy()
	}
}

func (b *Batch) askBusy() {
	busy := b.opt.Busy()
	b.localQueue.change(func() {
		b.localQueue.throttle.answered(busy)
	})
}

func (b *Batch) isBusy() bool {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	return b.localQueue.throttle.busy != ""
}

// giveAllBack gives back all jobs that a busy host has not begun: as parts if the unit has a
// running job, else by releasing the lock. A job to retry stays with its unit, which has the record
// of the failure. The caller holds the mutex.
func (b *Batch) giveAllBack() {
	for len(b.localQueue.ready) > 0 {
		last := len(b.localQueue.ready) - 1
		t := b.localQueue.ready[last]
		if t.holding.running == 0 {
			b.localQueue.takeBack(t.holding)
			continue
		}
		b.localQueue.ready = b.localQueue.ready[:last]
		t.holding.waiting--
		if _, tried := b.lastOf(t.holding, t.job); !tried {
			t.holding.giveBack(t.job+1, &b.localQueue.units[t.holding.unit])
		}
	}
}
