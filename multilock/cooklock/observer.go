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

// Look implements source.Observer. A lock is Free when nobody has ever had it, or
// when its value was watched for a whole period. To somebody who only looks it is
// Suspect when it is over by its holder's clock: watching it would prove that.
func (o *observer) Look(ctx context.Context) (source.Sighting, error) {
	w, err := o.src.peek(ctx, o.name, o.register)
	if err != nil {
		return source.Sighting{}, err
	}
	return o.sighting(w), nil
}

func (o *observer) sighting(w watch) source.Sighting {
	seen := source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown}
	if w.value == nil {
		seen.Why = "nobody has ever had it"
		return seen
	}
	record := decodeValue(o.name, w.value)
	period := o.src.watchFor(record)
	left := w.left(period)
	if left == 0 && record.Foreign == "" {
		seen.Why = fmt.Sprintf("nobody took it in the %s for which it was watched", period)
		return seen
	}
	seen.State, seen.Record, seen.Next = source.StateHeld, record, min(max(left, period/looks), period/10)
	if !o.contends && record.Foreign == "" && time.Now().After(over(record)) {
		seen.State = source.StateSuspect
	}
	seen.Why = o.why(record, period, left)
	return seen
}

// over is when a holder is done, by its own clock.
func over(record source.Record) time.Time { return record.Prepared.Add(cookingTime(record.TTL)) }

func (o *observer) why(record source.Record, period, left time.Duration) string {
	if record.Foreign != "" {
		return record.Foreign
	}
	why := fmt.Sprintf("it may be at work until %s by the clock of %s", over(record).Local().Format(time.DateTime), record.Holder.Host)
	if time.Now().After(over(record)) {
		why = fmt.Sprintf("it was done by %s by the clock of %s, which is no proof", over(record).Local().Format(time.DateTime), record.Holder.Host)
	}
	why += fmt.Sprintf("; anybody may have the lock who has seen it untouched for %s, here in %s", period, left.Round(time.Millisecond))
	if err := o.src.memory.trouble(); err != nil {
		why += fmt.Sprintf(" (this process has to wait for that, because later ones cannot be told what it saw: %v)", err)
	}
	return why
}

// Break implements source.Observer: nothing is ever judged to be dead.
func (o *observer) Break(context.Context) error { return source.ErrHeld }

// Force implements source.Observer: it refuses.
func (o *observer) Force(context.Context) error { return unbreakable(o.name, o.src.opt.Period) }

// unbreakable says why a lock that is released by time cannot be broken.
func unbreakable(name string, period time.Duration) error {
	return &source.OpError{
		Source: sourceName, Op: "break", Name: name, Err: source.ErrUnsupported,
		Hint: fmt.Sprintf("a cooking lock ends by time alone; wait for its period, %s", period),
	}
}

// Close implements source.Observer.
func (o *observer) Close() error { return nil }
