//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// fault is something that goes wrong for a while and is then put right.
type fault struct {
	kind   string
	where  string
	strike func(context.Context) error
	heal   func(context.Context) error
	lasts  time.Duration
}

func (f fault) String() string {
	return fmt.Sprintf("%s of %s for %s", f.kind, f.where, f.lasts.Round(time.Millisecond))
}

// tools makes an action of some of the lab's commands.
func tools(commands ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, c := range commands {
			if err := lab(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
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
	rng   *rand.Rand
	ttl   time.Duration
	hosts []*host
	crew  *crew
	each  dealer // which kind of fault of a host is next
	all   dealer // which kind of fault of the server
}

func newWeather(rng *rand.Rand, ttl time.Duration, hosts []*host, crew *crew) *weather {
	w := &weather{rng: rng, ttl: ttl, hosts: hosts, crew: crew}
	w.each = dealer{rng: rng, size: len(w.hostFaults(hosts[0]))}
	w.all = dealer{rng: rng, size: len(w.serverFaults())}
	return w
}

// round is what goes wrong at the same time: something with up to two of the
// hosts, with the server, or with all of them.
func (w *weather) round() []fault {
	var faults []fault
	shaken := w.rng.IntN(3)
	for _, i := range w.rng.Perm(len(w.hosts))[:shaken] {
		faults = append(faults, w.hostFaults(w.hosts[i])[w.each.next()])
	}
	if shaken == 0 || w.rng.IntN(2) == 0 {
		faults = append(faults, w.serverFaults()[w.all.next()])
	}
	return faults
}

// between gives a duration in units of the TTL.
func (w *weather) between(least, most float64) time.Duration {
	return time.Duration((least + (most-least)*w.rng.Float64()) * float64(w.ttl))
}

// clockShift is by how many seconds a clock is wrong, at least one: from less than a
// TTL to so many that every lock looks dead to whoever goes by it.
func (w *weather) clockShift() int { return int(w.between(0.5, 20).Seconds()) + 1 }

// What happens to single workers.
const (
	workerKill = "worker kill"
	workerStop = "worker stop"
)

// What happens to a host.
const (
	hostCrash      = "crash"
	hostPause      = "pause"
	shortPartition = "short partition"
	longPartition  = "long partition"
	lossyLink      = "lossy link"
	slowLink       = "slow link"
	lostReplies    = "loss of all replies"
	wrongClock     = "wrong clock"
)

func (w *weather) hostFaults(h *host) []fault {
	n := h.name
	percent, ms := 3+w.rng.IntN(25), 20+w.rng.IntN(200)
	wrong := w.clockShift()
	if w.rng.IntN(2) == 0 {
		wrong = -wrong
	}
	return []fault{
		{hostCrash, n, w.crash(h), w.boot(h), w.between(0, 2)},
		{hostPause, n, tools("host pause " + n), tools("host resume " + n), w.between(1.2, 3)},
		{shortPartition, n, tools("net cut " + n), tools("net heal " + n), w.between(0.1, 0.7)},
		{longPartition, n, tools("net cut " + n), tools("net heal " + n), w.between(1.2, 4)},
		{lossyLink, n, tools(fmt.Sprintf("net loss %s %d", n, percent)), tools("net loss " + n + " 0"), w.between(1, 3)},
		{slowLink, n, tools(fmt.Sprintf("net delay %s %d %d", n, ms, ms/2)), tools("net delay " + n + " 0"), w.between(1, 3)},
		{lostReplies, n, tools("net drop-replies " + n + " on"), tools("net drop-replies " + n + " off"), w.between(0.2, 3)},
		{wrongClock, n, tools(fmt.Sprintf("host clock %s %d", n, wrong)), tools("host clock " + n + " 0"), w.between(0.5, 4)},
	}
}

// What happens to the server.
const (
	serverRestart    = "restart"
	serverPowerCut   = "power cut"
	serverDisconnect = "break of all connections"
	serverSilence    = "silence"
	clockForward     = "clock forward"
	clockBack        = "clock back"
)

func (w *weather) serverFaults() []fault {
	const n = "server"
	shift := w.clockShift()
	ahead, behind := fmt.Sprintf("server clock +%d", shift), fmt.Sprintf("server clock -%d", shift)
	return []fault{
		{serverRestart, n, tools("server stop"), tools("server start"), w.between(0, 2)},
		{serverPowerCut, n, tools("server crash"), tools(), 0},
		{serverDisconnect, n, tools("server disconnect"), tools(), 0},
		{serverSilence, n, tools("server unplug"), tools("server plug"), w.between(0.2, 3)},
		{clockForward, n, tools(ahead), tools(behind), w.between(0.5, 2)},
		{clockBack, n, tools(behind), tools(ahead), w.between(0.5, 2)},
	}
}

// crash is a power cut of a host.
func (w *weather) crash(h *host) func(context.Context) error {
	return func(ctx context.Context) error {
		h.crash()
		if err := lab(ctx, "host crash "+h.name); err != nil {
			return err
		}
		return w.crew.bury(h)
	}
}

func (w *weather) boot(h *host) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := lab(ctx, "host boot "+h.name); err != nil {
			return err
		}
		h.boot()
		return nil
	}
}
