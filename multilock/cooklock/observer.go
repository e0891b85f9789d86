package cooklock

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"
)

// observer looks at one register.
type observer struct {
	src      *Source
	name     string
	register Register
	contends bool
}

// Look implements source.Observer. A lock is Free if it was never held, or if its value was watched
// for a whole period. For an observer that does not contend it is Suspect when it is over by its
// holder's clock: watching it would prove that.
func (o *observer) Look(ctx context.Context) (source.Observation, error) {
	w, err := o.src.peek(ctx, o.name, o.register)
	if err != nil {
		return source.Observation{}, err
	}
	return o.observation(w), nil
}

func (o *observer) observation(w watch) source.Observation {
	seen := source.Observation{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown}
	if w.value == nil {
		seen.Why = "it has never been held"
		return seen
	}
	record := decodeValue(o.name, w.value)
	period := o.src.watchFor(record)
	left := w.left(period)
	if left == 0 && record.Foreign == "" {
		seen.Why = fmt.Sprintf("no process acquired it in the %s for which it was watched", period)
		return seen
	}
	seen.State, seen.Record, seen.Next = source.StateHeld, record, min(max(left, period/looksPerPeriod), period/10)
	if !o.contends && record.Foreign == "" && time.Now().After(over(record)) {
		seen.State = source.StateSuspect
	}
	seen.Why = o.why(record, period, left)
	return seen
}

// over is when a holder's time ends, by its own clock.
func over(record source.Record) time.Time { return record.Prepared.Add(cookingTime(record.TTL)) }

func (o *observer) why(record source.Record, period, left time.Duration) string {
	if record.Foreign != "" {
		return record.Foreign
	}
	why := fmt.Sprintf("it may be at work until %s by the clock of %s", over(record).Local().Format(time.DateTime), record.Holder.Host)
	if time.Now().After(over(record)) {
		why = fmt.Sprintf("it was done by %s by the clock of %s, which is no proof", over(record).Local().Format(time.DateTime), record.Holder.Host)
	}
	why += fmt.Sprintf("; a process that has seen it untouched for %s can acquire the lock, here in %s", period, left.Round(time.Millisecond))
	if err := o.src.memory.trouble(); err != nil {
		why += fmt.Sprintf(" (this process has to wait for that itself, because it cannot leave its observation to later ones: %v)", err)
	}
	return why
}

// Break implements source.Observer: no lock is ever Dead.
func (o *observer) Break(context.Context) error { return source.ErrHeld }

// Force implements source.Observer. It always fails.
func (o *observer) Force(context.Context) error { return unbreakable(o.name, o.src.opt.Period) }

// unbreakable returns the error that the lock cannot be broken.
func unbreakable(name string, period time.Duration) error {
	return &source.OpError{
		Source: sourceName, Op: "break", Name: name, Err: source.ErrUnsupported,
		Hint: fmt.Sprintf("a cooking lock ends by time alone; wait for its period, %s", period),
	}
}

// Close implements source.Observer.
func (o *observer) Close() error { return nil }
