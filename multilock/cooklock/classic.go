package cooklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Classic is the cooking lock as it was first described: the register holds the
// time until which somebody is at work, and hosts compare it with their own clocks.
// It is for sharing registers with other implementations of that; use New for
// everything else.
//
// Two never work at the same time as long as all of this is true, for all who use
// the register: they publish the same period; their clocks never differ by more
// than Skew, and are not set while the lock is in use; and no swap takes effect
// more than Delay after its host read its clock. A process that is paused between
// these two breaks the last one, and a second process may then start while the
// first is at work. docs/models/classic.pml shows each.
type Classic struct {
	opt    ClassicOptions
	unwrap *Source // opens registers and knows who we are
}

// ClassicOptions are those of Options, and what is taken for granted of the hosts.
type ClassicOptions struct {
	Options
	// Skew is the largest difference between the clocks of two hosts, one second if 0.
	Skew time.Duration
	// Delay is the longest time between reading a clock and the end of the swap that
	// publishes it, one second if 0. An own swap that took longer wins nothing.
	Delay time.Duration
}

// rounding is what a time in whole seconds can lack.
const rounding = time.Second

// cook is how long a holder works: what is left of the period once all that may
// shorten the published time is taken from it.
func (o ClassicOptions) cook() time.Duration { return o.Period - o.Skew - o.Delay - rounding }

var (
	_ source.Source      = (*Classic)(nil)
	_ source.Describer   = (*Classic)(nil)
	_ source.NameChecker = (*Classic)(nil)
)

// NewClassic makes a source of cooking locks of the classic kind.
func NewClassic(opt ClassicOptions) (*Classic, error) {
	opt.Notes = "" // a published time needs no watching
	base, err := New(opt.Options)
	if err != nil {
		return nil, err
	}
	opt.Options = base.opt
	if opt.Skew == 0 {
		opt.Skew = time.Second
	}
	if opt.Delay == 0 {
		opt.Delay = time.Second
	}
	switch {
	case opt.Skew < 0 || opt.Delay < 0:
		return nil, &source.InvalidError{What: "skew and delay", Got: opt.Skew.String() + ", " + opt.Delay.String(), Why: "must be positive"}
	case opt.Period%time.Second != 0:
		return nil, &source.InvalidError{What: "period", Got: opt.Period.String(), Why: "must be a whole number of seconds"}
	case opt.cook() <= 0:
		return nil, &source.InvalidError{
			What: "period", Got: opt.Period.String(),
			Why: fmt.Sprintf("must be longer than the skew of the clocks, the delay of a swap and a second for rounding: %s", opt.Period-opt.cook()),
		}
	}
	return &Classic{opt: opt, unwrap: base}, nil
}

// Contend implements source.Source.
func (s *Classic) Contend(_ context.Context, name string, claim source.Claim, _ source.Patience) (source.Contender, error) {
	register, err := s.unwrap.open(name)
	if err != nil {
		return nil, err
	}
	if claim.Holder.Identity == (process.Identity{}) {
		claim.Holder.Identity = s.opt.Self
	}
	claim.TTL, claim.Heartbeat = s.opt.Period, 0
	return &classicContender{src: s, name: name, register: register, claim: claim}, nil
}

// Observe implements source.Source.
func (s *Classic) Observe(ctx context.Context, name string, patience source.Patience) (source.Observer, error) {
	return s.Contend(ctx, name, source.Claim{}, patience)
}

// Names implements source.Source: the names under which somebody is at work by
// this host's clock.
func (s *Classic) Names(ctx context.Context) ([]string, error) {
	if s.opt.Names == nil {
		return nil, source.ErrUnsupported
	}
	all, err := s.opt.Names(ctx)
	if err != nil {
		return nil, err
	}
	var held []string
	for _, name := range all {
		seen, err := multilock.Inspect(ctx, s, name, source.Patience{})
		if err != nil && !errors.Is(err, source.ErrInvalid) {
			return nil, err
		}
		if err != nil || seen.State != source.StateFree {
			held = append(held, name)
		}
	}
	return held, nil
}

// CheckName implements source.NameChecker.
func (s *Classic) CheckName(name string) error { return s.unwrap.CheckName(name) }

// Promises implements source.Describer.
func (s *Classic) Promises() []source.Promise {
	return append(timedPromises(),
		source.Promise{Trait: source.TraitSafeSilence, Why: fmt.Sprintf(
			"hosts compare clocks, which must agree to %s, and a process that is paused for %s before its swap lets a second one in", s.opt.Skew, s.opt.Delay)},
		source.Promise{Trait: source.TraitFenceNumbers, Kept: true, Why: "the register counts its swaps; a million numbers belong to each"})
}

// classicContender is for one goroutine; it keeps nothing between two calls.
type classicContender struct {
	src      *Classic
	name     string
	register Register
	claim    source.Claim
}

// Try implements source.Contender: it publishes its own time if nobody is at
// work, and has the lock if the swap shows that nobody had become so meanwhile.
func (c *classicContender) Try(ctx context.Context) (source.Lease, error) {
	until, err := c.peek(ctx)
	if err != nil {
		return nil, err
	}
	if time.Now().Before(until) {
		return nil, source.ErrHeld
	}
	start, now := boottime.Now(), time.Now()
	value := publish(now.Add(c.src.opt.Period))
	old, number, err := c.register.Swap(ctx, value)
	if err != nil {
		return nil, err
	}
	before, err := c.parse(old)
	if err != nil {
		return nil, err
	}
	record := source.Record{Name: c.name, Token: string(value) + "." + strconv.FormatUint(number, 10), Claim: c.claim, Prepared: now}
	if before.After(now) || start.Elapsed() > c.src.opt.Delay {
		return nil, source.ErrHeld
	}
	return newLease(record, start, c.src.opt.cook(), number), nil
}

// peek is until when somebody is at work.
func (c *classicContender) peek(ctx context.Context) (time.Time, error) {
	value, _, err := c.register.Peek(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return c.parse(value)
}

// parse refuses what another algorithm wrote, and a time that nobody with the same
// period and a clock within the skew can have written.
func (c *classicContender) parse(value []byte) (time.Time, error) {
	until, err := parseTime(value)
	if err != nil {
		return time.Time{}, &source.InvalidError{What: "register of lock", Got: c.name, Err: err, Why: err.Error() + "; choose another name"}
	}
	if ahead := time.Until(until); ahead > c.src.opt.Period+c.src.opt.Skew+rounding {
		return time.Time{}, &source.InvalidError{
			What: "period", Got: c.src.opt.Period.String(),
			Why: fmt.Sprintf("lock %q is taken for another %s, so somebody uses a longer period or a clock that is ahead; give all hosts the same period and the right time", c.name, ahead.Round(time.Second)),
		}
	}
	return until, nil
}

// publish writes a time in whole seconds of Unix time, rounded up: a shorter time
// would let others in too early.
func publish(until time.Time) []byte {
	return strconv.AppendInt(nil, until.Add(rounding-1).Unix(), 10)
}

// parseTime reads what the classic lock keeps in a register. Nothing at all means
// that nobody is at work.
func parseTime(value []byte) (time.Time, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseUint(string(value), 10, 62)
	if err != nil {
		return time.Time{}, errors.New("the register does not hold a time in seconds, as the classic cooking lock writes it")
	}
	return time.Unix(int64(seconds), 0), nil //nolint:gosec // at most 62 bits
}

// Look implements source.Observer, by this host's clock.
func (c *classicContender) Look(ctx context.Context) (source.Sighting, error) {
	until, err := c.peek(ctx)
	if err != nil {
		return source.Sighting{}, err
	}
	seen := source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "nobody has published a time that is not over"}
	if left := time.Until(until); left > 0 {
		seen.State, seen.Next = source.StateHeld, left
		seen.Record = source.Record{Name: c.name, Claim: source.Claim{TTL: c.src.opt.Period}}
		seen.Why = fmt.Sprintf("somebody may be at work until %s, which is for %s by this host's clock", until.Local().Format(time.DateTime), left.Round(time.Second))
	}
	return seen, nil
}

// Wake implements source.Contender.
func (c *classicContender) Wake() <-chan struct{} { return nil }

// Break implements source.Observer.
func (c *classicContender) Break(context.Context) error { return source.ErrHeld }

// Force implements source.Observer: it refuses.
func (c *classicContender) Force(context.Context) error {
	return unbreakable(c.name, c.src.opt.Period)
}

// Close implements source.Observer.
func (c *classicContender) Close() error { return nil }
