package fslock

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// observer watches one lock. It judges an open directory and breaks that same directory: both go through
// one descriptor.
type observer struct {
	src    *Source
	name   string
	maxAge time.Duration
	probe  source.Probe // nil if there is none
	own    func(token string) bool

	dir        vfs.Dir // the directory that is being judged, nil if it cannot be opened
	watch      source.Watch[sign]
	record     source.Record
	torn       bool
	strange    strange // what is known of a record in an unknown format
	orphan     bool    // there is no lock file
	clock      error   // why the server's clock could not be read
	strays     []string
	busy       string    // one of strays, which a process on this host has open
	taken      time.Time // when the lock was acquired, by the server's clock
	assessment source.Assessment
	jobs       process.JobWatch
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	o := s.newObserver(name, policy)
	return &o, nil
}

func (s *Source) newObserver(name string, policy source.StalePolicy) observer {
	return observer{src: s, name: name, maxAge: policy.MaxAge, probe: policy.Probe}
}

// errFree means that nothing holds the lock.
var errFree = errors.New("free")

// Look implements source.Observer.
func (o *observer) Look(ctx context.Context) (source.Observation, error) {
	err := o.sample()
	switch {
	case errors.Is(err, errFree):
		o.forget()
		return source.Observation{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "no process holds it"}, nil
	case errors.Is(err, source.ErrInvalid):
		return source.Observation{}, err
	case err != nil:
		o.watch.Interrupt()
		return source.Observation{}, opError("look", o.name, err)
	}
	e := o.evidence()
	if o.assessment = o.judge(e); o.assessment.State != source.StateHeld {
		e.Silence = o.silence(source.ClockFresh)
		e.clock = o.clock
		o.assessment = o.judge(e)
	}
	if o.assessment.State != source.StateDead && o.ask(ctx, &e) {
		o.assessment = o.judge(e)
	}
	if o.assessment.State != source.StateHeld || e.Holder.Life == process.Gone {
		if e.SearchJob(&o.jobs, o.src.self) {
			o.assessment = o.judge(e)
		}
	}
	return source.Observation{
		State: o.assessment.State, Record: o.record, Age: o.age(), Silence: silence(e),
		Why: o.assessment.Why, Orphan: o.orphan, Next: o.assessment.Next,
	}, nil
}

// ask adds the answer of the probe, if the holder seems to be late. The carried-forward clock may make a
// holder look late that is not, so the server's clock is read first.
func (o *observer) ask(ctx context.Context, e *evidence) bool {
	if o.probe == nil || o.orphan || o.dir == nil || !e.Overdue(e.rules()) {
		return false
	}
	e.Silence = o.silence(source.ClockFresh)
	e.clock = o.clock
	if !e.Overdue(e.rules()) {
		return false
	}
	e.Probed = o.probe(ctx, o.record)
	return true
}

func (o *observer) judge(e evidence) source.Assessment {
	if !o.orphan {
		return judge(e)
	}
	return o.orphanAssessment(e)
}

// sample takes one look at the lock's directory, and reads the record if the directory is new to this
// observer or has changed. It reads after it has fetched the directory's times, so that a change in between
// shows at the next look.
func (o *observer) sample() error {
	start := o.src.clock.Now()
	if o.dir != nil {
		info, err := o.dir.Stat()
		if err == nil && info.Links > 0 && signOf(info) == o.watch.Last() && o.settled() {
			o.sampled(info, start, o.beat())
			return nil
		}
		if err != nil && !gone(err) {
			return err
		}
		if err == nil && info.Links > 0 {
			if again, err := o.reread(start, info); again || err != nil {
				return err
			}
		}
		o.forget()
	}
	return o.open(start)
}

// sampled adds a sample to the watch.
func (o *observer) sampled(info vfs.Info, start boottime.Instant, beat time.Duration) {
	o.watch.Add(signOf(info), start, o.src.clock.Now(), limitsFor(beat))
}

// settled reports whether what was read still holds if the directory's times are unchanged. The times do
// not show when a partly written job file is complete; and where they have a coarse step, they do not even
// show that it was created or replaced.
func (o *observer) settled() bool {
	return o.watch.Last().grain() == 0 && (!o.telling() || len(o.record.Groups) > 0)
}

// telling reports whether this host can judge the groups in the job file.
func (o *observer) telling() bool {
	return o.record.Job && !o.record.Holder.Elsewhere(o.src.self)
}

// reread handles a change of the directory that is being judged, usually a heartbeat. It returns false if
// the directory is not the lock any more.
func (o *observer) reread(start boottime.Instant, info vfs.Info) (bool, error) {
	if err := o.read(); err != nil {
		if gone(err) || errors.Is(err, errFree) {
			return false, nil
		}
		return false, err
	}
	o.sampled(info, start, o.beat())
	return true, nil
}

// open opens the lock's current directory.
func (o *observer) open(start boottime.Instant) error {
	group, err := o.src.groupDir.Present()
	if gone(err) {
		return errFree
	}
	if err != nil {
		return o.src.groupError(err)
	}
	defer o.src.groupDir.Done(group)
	dir, err := group.OpenDir(o.name)
	switch {
	case gone(err):
		return errFree
	case is(err, syscall.ENOTDIR, syscall.ELOOP):
		return o.src.inTheWay(o.name)
	case is(err, syscall.EACCES, syscall.EPERM):
		return o.private(group, start, err)
	case err != nil:
		return err
	}
	return o.adopt(dir, start)
}

// adopt makes dir the directory that is being judged.
func (o *observer) adopt(dir vfs.Dir, start boottime.Instant) error {
	o.dir = dir
	info, err := o.asOpened(dir)
	if err == nil {
		err = o.read()
	}
	switch {
	case gone(err):
		return errFree
	case err != nil:
		return err
	}
	o.sampled(info, start, o.beat())
	return nil
}

// asOpened describes a directory that was just opened: an NFS client fetches its attributes on open.
func (o *observer) asOpened(dir vfs.Dir) (vfs.Info, error) {
	if o.src.base.Kind.NFS {
		return dir.StatCached()
	}
	return dir.Stat()
}

// private describes a lock whose directory this user may not open, or does not trust.
func (o *observer) private(group vfs.Dir, start boottime.Instant, denied error) error {
	info, err := group.StatName(o.name)
	if gone(err) {
		return errFree
	}
	if err != nil {
		return err
	}
	why := "its owner (uid " + strconv.FormatUint(uint64(info.UID), 10) + ") keeps the lock's directory private"
	var refused *shareddir.Refusal
	if errors.As(denied, &refused) {
		why = "its directory is not trusted: " + refused.Why
	}
	o.record = source.Record{Name: o.name, Foreign: why}
	o.sampled(info, start, tornBeat)
	return nil
}

// beat is the heartbeat interval to expect of the holder.
func (o *observer) beat() time.Duration {
	if o.record.Heartbeat > 0 {
		return o.record.Heartbeat
	}
	return tornBeat
}

// evidence gathers what the assessment is based on.
func (o *observer) evidence() evidence {
	self := o.src.self
	e := evidence{
		Evidence: source.Evidence{
			Record: o.record, MaxAge: o.maxAge, Grain: o.watch.Last().grain(),
			Silence: o.silence(source.ClockCarried), Unchanged: o.watch.Unchanged(), Watched: o.watch.Watched(),
		},
		torn: o.torn, strange: o.strange, peer: findPeer(o.record, self), legacy: o.src.legacy,
	}
	e.clock, e.shown, e.clocks = o.clock, o.watch.Shown(), o.src.base.Kind.ManyClocks
	if o.dir == nil {
		e.MaxAge = 0 // a directory that may not be opened cannot be broken either
	}
	e.AskHost(self)
	return e
}

// silence is the time from the last heartbeat to the last sample, by the server's clock. Reading the clock
// takes a request of its own; the time since the last sample is subtracted, because the lock was not
// watched meanwhile. If the clock cannot be read, as in a directory that this user may only read, the
// observer's own watching has to do.
func (o *observer) silence(age time.Duration) time.Duration {
	early, late, err := o.src.base.Around(age)
	if o.clock = err; err != nil {
		return source.Unknown
	}
	sign := o.watch.Last().modified
	if ahead := late.Sub(sign); ahead < -futureSlack {
		return ahead
	}
	return max(early.Sub(sign)-o.watch.Stale(o.src.clock.Now()), 0)
}

// futureSlack is how far in the future a heartbeat may lie before that means that the server's clock was
// set back: a carried-forward reading is as inaccurate as the local clock.
const futureSlack = 2 * source.ClockFresh

func silence(e evidence) time.Duration {
	if e.Silence == source.Unknown {
		return source.Unknown
	}
	return max(e.Silence, 0)
}

func (o *observer) age() time.Duration {
	now, err := o.src.base.Now(source.ClockCarried)
	if err != nil || o.taken.IsZero() {
		return source.Unknown
	}
	return max(now.Sub(o.taken), 0)
}

// forget closes the directory that was judged.
func (o *observer) forget() {
	if o.dir != nil {
		_ = o.dir.Close()
	}
	*o = observer{src: o.src, name: o.name, maxAge: o.maxAge, probe: o.probe, own: o.own, jobs: o.jobs}
}

// Close implements source.Observer.
func (o *observer) Close() error {
	o.forget()
	return nil
}

// sign identifies a heartbeat: the times of the lock's directory, which the server sets.
type sign struct{ modified, changed time.Time }

func signOf(info vfs.Info) sign {
	// In UTC, equal instants are equal values.
	return sign{info.ModTime.UTC(), info.ChangeTime.UTC()}
}

// fastest is the shortest time that may count as slow for a sample: on a loaded machine the scheduler alone
// takes that long.
const fastest = 25 * time.Millisecond

// limitsFor returns how samples must be spaced for a holder that sends a heartbeat every beat.
func limitsFor(beat time.Duration) source.WatchLimits {
	return source.WatchLimits{Slow: max(beat/4, fastest), Gap: max(beat, 2*fastest)}
}

// grain is the coarsest step that the times of a sign may have. A fine-grained time that happens to be a
// whole second only delays the assessment a little.
func (s sign) grain() time.Duration {
	if shareddir.WholeSeconds(s.modified) {
		return shareddir.Coarsest
	}
	return 0
}
