package cooklock

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// DefaultPeriod is the default of Options.Period.
const DefaultPeriod = 5 * time.Minute

// Options select the registers, and how long a lock lasts.
type Options struct {
	// Ledger stores the registers, each as the result of its lock's name. It must have no other
	// use. The period must be at least 400 ms then.
	Ledger source.Ledger
	// Open, without a Ledger, returns the register of a lock's name. It sends no request. The error
	// is source.ErrInvalid for a name that cannot have a register.
	Open func(name string) (Register, error)
	// Names, without a Ledger, lists the names whose registers may have been used. If
	// it is nil, the locks cannot be listed.
	Names func(ctx context.Context) ([]string, error)
	// Period is how long a lock lasts, DefaultPeriod if 0: how long a value must be seen in the
	// register before it may be replaced. It must be in whole milliseconds. All users of a lock
	// must use the same period.
	Period time.Duration
	// Notes is a directory on this host, not on a shared filesystem, in which a process records its
	// observations for later processes: see DefaultNotes. If it is empty, each process watches for
	// a whole period itself.
	Notes string
	// Place distinguishes, in Notes, registers with the same name in different locations.
	Place string
	// Self is the identity of the calling process, determined if zero. For tests.
	Self process.Identity
}

// check validates the options and fills in the defaults.
func (o Options) check() (Options, error) {
	if o.Period == 0 {
		o.Period = DefaultPeriod
	}
	least := source.MinTTL
	if o.Ledger != nil {
		o, least = o.onLedger(), partOfPeriod*source.MinTTL
	}
	why := ""
	switch {
	case o.Open == nil:
		return o, &source.InvalidError{What: "option", Got: "Ledger and Open", Why: "must name the place of the registers"}
	case o.Period < least:
		why = "must be at least " + least.String()
	case o.Period > source.MaxTTL:
		why = "must be at most " + source.MaxTTL.String()
	case o.Period%time.Millisecond != 0:
		why = "must be a whole number of milliseconds"
	}
	if why != "" {
		return o, &source.InvalidError{What: "period", Got: o.Period.String(), Why: why}
	}
	if o.Self == (process.Identity{}) {
		self, err := process.Self()
		if err != nil {
			return o, &source.OpError{Source: sourceName, Op: "identify this process", Err: err}
		}
		o.Self = self
	}
	return o, nil
}

// Source has cooking locks. To acquire one, a contender watches its register for a whole period,
// swaps, and compares the previous value. It is safe for concurrent use.
type Source struct {
	opt    Options
	memory *memory
}

var (
	_ source.Source      = (*Source)(nil)
	_ source.Describer   = (*Source)(nil)
	_ source.NameChecker = (*Source)(nil)
)

// New returns a source of cooking locks.
func New(opt Options) (*Source, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	return &Source{opt: opt, memory: newMemory(newNotes(opt.Notes, opt.Place, opt.Self))}, nil
}

// Period is how long a lock lasts.
func (s *Source) Period() time.Duration { return s.opt.Period }

// Self returns the identity of the calling process.
func (s *Source) Self() process.Identity { return s.opt.Self }

// CheckName implements source.NameChecker.
func (s *Source) CheckName(name string) error {
	_, err := s.open(name)
	return err
}

func (s *Source) open(name string) (Register, error) {
	if name == "" {
		return nil, &source.InvalidError{What: "lock name", Got: name, Why: "must not be empty"}
	}
	return s.opt.Open(name)
}

// Contend implements source.Source. The claim's TTL and heartbeat are ignored: a lock lasts for the
// source's period.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, _ source.StalePolicy) (source.Contender, error) {
	register, err := s.open(name)
	if err != nil {
		return nil, err
	}
	if claim.Holder.Identity == (process.Identity{}) {
		claim.Holder.Identity = s.opt.Self
	}
	claim.TTL, claim.Heartbeat = s.opt.Period, 0
	return &contender{observer: observer{src: s, name: name, register: register, contends: true}, claim: claim}, nil
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, _ source.StalePolicy) (source.Observer, error) {
	register, err := s.open(name)
	if err != nil {
		return nil, err
	}
	return &observer{src: s, name: name, register: register}, nil
}

// listedFor is how long after its end, by its holder's clock, a lock is still listed. The clocks of
// a cluster's hosts are assumed to differ by less.
const listedFor = 24 * time.Hour

// Names implements source.Source. It leaves out the locks that this process knows to be free, and
// those that ended over a day ago by their holder's clock.
func (s *Source) Names(ctx context.Context) ([]string, error) {
	if s.opt.Names == nil {
		return nil, source.ErrUnsupported
	}
	all, err := s.opt.Names(ctx)
	if err != nil {
		return nil, err
	}
	var held []string
	for _, name := range all {
		may, err := s.mayBeHeld(ctx, name)
		if err != nil && !errors.Is(err, source.ErrInvalid) {
			return nil, err
		}
		if may || err != nil { // list an unreadable register, so that users see it
			held = append(held, name)
		}
	}
	return held, nil
}

func (s *Source) mayBeHeld(ctx context.Context, name string) (bool, error) {
	register, err := s.open(name)
	if err != nil {
		return false, err
	}
	w, err := s.peek(ctx, name, register)
	if err != nil {
		return false, err
	}
	record := decodeValue(name, w.value)
	if w.left(s.watchFor(record)) == 0 {
		return false, nil
	}
	return record.Foreign != "" || time.Since(record.Prepared.Add(record.TTL)) < listedFor, nil
}

// peek looks at a register. It reads the clock afterwards, so that the value was certainly there at
// that moment.
func (s *Source) peek(ctx context.Context, name string, register Register) (watch, error) {
	value, number, err := register.Peek(ctx)
	if err != nil {
		return watch{}, err
	}
	return s.memory.saw(name, value, number, boottime.Now()), nil
}

// watchFor returns how long a value must be watched: the longer one of this source's period and its
// writer's.
func (s *Source) watchFor(record source.Record) time.Duration {
	return max(s.opt.Period, record.TTL)
}
