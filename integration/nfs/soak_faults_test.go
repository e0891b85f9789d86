package nfs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// fault is something that goes wrong for a while and is then put right.
type fault struct {
	kind   string
	strike func() error
	heal   func() error
	lasts  time.Duration
}

func (f fault) String() string { return f.kind }

// tools is one of the lab's commands.
func tools(format string, args ...any) func() error {
	words := strings.Fields(fmt.Sprintf(format, args...))
	return func() error { return tool(words[0], words[1:]...) }
}

// dealer deals the kinds of faults in random order, each as often as the others.
type dealer struct {
	rng  *rand.Rand
	size int
	deck []int
}

func (d *dealer) next() int {
	if len(d.deck) == 0 {
		d.deck = d.rng.Perm(d.size)
	}
	drawn := d.deck[0]
	d.deck = d.deck[1:]
	return drawn
}

// weather is where faults come from.
type weather struct {
	*soak
	rng  *rand.Rand
	each dealer // which kind of fault of a host is next
	all  dealer // which kind of fault of the server
}

func newWeather(s *soak) *weather {
	w := &weather{soak: s, rng: s.rng(0)}
	w.each = dealer{rng: w.rng, size: len(w.hostFaults(hosts()[0]))}
	w.all = dealer{rng: w.rng, size: len(w.serverFaults())}
	return w
}

// next is what goes wrong at the same time: something with up to two of the
// hosts, with the server, or with all of them.
func (w *weather) next() (faults []fault) {
	shaken := w.rng.IntN(3)
	for _, i := range w.rng.Perm(len(hosts()))[:shaken] {
		faults = append(faults, w.hostFaults(hosts()[i])[w.each.next()])
	}
	if shaken == 0 || w.rng.IntN(2) == 0 {
		faults = append(faults, w.serverFaults()[w.all.next()])
	}
	return faults
}

// between gives a duration in units of the TTL.
func (w *weather) between(least, most float64) time.Duration {
	return time.Duration((least + (most-least)*w.rng.Float64()) * float64(w.shift.TTL))
}

// clockShift is by how many seconds a clock is wrong, at least one: from less than a
// TTL to so many that every lock looks dead to whoever goes by it.
func (w *weather) clockShift() int { return int(w.between(0.5, 20).Seconds()) + 1 }

func (w *weather) hostFaults(h host) []fault {
	n := h.name
	percent, ms := 3+w.rng.IntN(25), 20+w.rng.IntN(200)
	wrong := w.clockShift()
	if w.rng.IntN(2) == 0 {
		wrong = -wrong
	}
	return []fault{
		{"host crash", func() error { return w.crash(h) }, func() error { return w.boot(h) }, w.between(0, 2)},
		{"host pause", tools("host pause %s", n), tools("host resume %s", n), w.between(1.2, 3)},
		{"short partition", tools("net cut %s", n), tools("net heal %s", n), w.between(0.1, 0.7)},
		{"long partition", tools("net cut %s", n), tools("net heal %s", n), w.between(1.2, 4)},
		{"lossy link", tools("net loss %s %d", n, percent), tools("net loss %s 0", n), w.between(1, 3)},
		{"slow link", tools("net delay %s %d %d", n, ms, ms/2), tools("net delay %s 0", n), w.between(1, 3)},
		{"loss of all replies", tools("net drop-replies %s on", n), tools("net drop-replies %s off", n), w.between(0.2, 3)},
		{"wrong clock", tools("host clock %s %d", n, wrong), tools("host clock %s 0", n), w.between(0.5, 4)},
	}
}

func (w *weather) serverFaults() []fault {
	shift := w.clockShift()
	ahead, behind := tools("server clock +%d", shift), tools("server clock -%d", shift)
	nothing := func() error { return nil }
	return []fault{
		{"server restart", tools("server stop"), tools("server start"), w.between(0, 2)},
		{"server power cut", tools("server crash"), nothing, 0},
		{"break of all connections", tools("server disconnect"), nothing, 0},
		{"server silence", tools("server unplug"), tools("server plug"), w.between(0.2, 3)},
		{"clock forward", ahead, behind, w.between(0.5, 2)},
		{"clock back", behind, ahead, w.between(0.5, 2)},
	}
}
