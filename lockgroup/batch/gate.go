package batch

import "time"

// gate is where jobs are begun. It is closed while this host is busy. After that one is let
// through, a second later two, then four: what they need shows only when they run.
type gate struct {
	busy   string // why it is closed
	guards bool   // somebody is asked
	width  int    // how many are let through between two questions
	left   int
}

// gateEvery is how often it is asked whether this host is busy.
const gateEvery = time.Second

const widestGate = 1 << 20

func (g *gate) open() bool { return !g.guards || g.left > 0 }

func (g *gate) pass() { g.left-- }

// answered takes in what was said.
func (g *gate) answered(busy string) {
	g.guards, g.busy = true, busy
	if busy != "" {
		g.width = 0
	} else {
		g.width = min(max(2*g.width, 1), widestGate)
	}
	g.left = g.width
}

// keepGate asks again and again whether this host is busy, until the channel is closed.
func (b *Batch) keepGate(ended <-chan struct{}) {
	ticks := time.NewTicker(gateEvery)
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
	b.hands.change(func() {
		b.hands.gate.answered(busy)
		if busy != "" && b.chunks == nil {
			b.giveAllBack() // there is no board on which others could ask for it
		}
	})
}

func (b *Batch) isBusy() bool {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.hands.gate.busy != ""
}

// giveAllBack gives back what a busy host has not begun: of a unit of which a job runs as
// parts, others with their lock. What failed here and is to be tried again comes with the lock
// in any case, for the record of that is under it. The caller holds the mutex.
func (b *Batch) giveAllBack() {
	for len(b.hands.ready) > 0 {
		last := len(b.hands.ready) - 1
		t := b.hands.ready[last]
		if t.holding.running == 0 {
			b.hands.takeBack(t.holding)
			continue
		}
		b.hands.ready = b.hands.ready[:last]
		t.holding.waiting--
		if _, tried := b.lastOf(t.holding, t.job); !tried {
			t.holding.giveBack(t.job+1, &b.hands.units[t.holding.unit])
		}
	}
}
