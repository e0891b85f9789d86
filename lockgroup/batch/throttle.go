package batch

import (
	"time"
)

// throttle limits how many jobs begin. While this host is busy none begins; after that one, a second
// later two, then four, because load shows only after jobs start.
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

// answered applies a result of Options.Busy.
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
	b.schedule.change(func() {
		b.schedule.throttle.answered(busy)
	})
}
