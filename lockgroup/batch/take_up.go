package batch

import (
	"context"
	"errors"
	"io/fs"

	"github.com/multilock/go/internal/bounded"
)

// settle reads the list until it has as many sections as a record refers to. If the editor died or
// stalled between the record and the section, settle appends an empty section instead: the list stays
// as it was, and the editor can no longer append there.
func (b *Batch) settle(ctx context.Context, needed int) ([][]byte, error) {
	for {
		there, err := b.read(ctx)
		if err != nil || len(there) >= needed {
			return there, err
		}
		now, err := readList(there)
		if err != nil {
			return nil, err
		}
		if _, err := bounded.Call(ctx, func(ctx context.Context) (bool, error) {
			return b.grower.Continue(ctx, there, headOf(nil, nil, now.shell))
		}); err != nil {
			return nil, err
		}
	}
}

// takeUp reads what other hosts have added to the list or changed in it, after a round of work. It
// returns false if there is nothing more to do. A process that cannot run the added jobs leaves them to
// other hosts, and continues with its own list unless that list was replaced.
func (b *Batch) takeUp(ctx context.Context) (bool, error) {
	needed := b.schedule.needed()
	asks := b.opt.Follow != nil || needed > b.schedule.known
	if b.grower == nil || !asks || !b.takes() || needed <= b.schedule.known && !b.exchange.grown(ctx) {
		return false, nil
	}
	there, err := b.settle(ctx, needed)
	early := b.schedule.outdated
	if errors.Is(err, fs.ErrNotExist) && !early { // another host removed the list when all was done
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := readList(there)
	if err != nil {
		return false, err
	}
	switch own := b.schedule.revision; {
	case b.runs(now):
	case now.revision > own:
		return false, ErrReplaced
	case !early:
		return false, nil
	default:
		now = &list{b.jobs, b.opt.Barriers, b.opt.Needs, b.opt.Shell, b.sections, own}
	}
	b.adopt(now, len(there))
	return true, b.exchange.open(ctx)
}

// runs completes the jobs of a list for this process. It returns false if it cannot run one, or must
// not.
func (b *Batch) runs(l *list) bool {
	own := make(map[string]Job, len(b.jobs))
	for _, job := range b.jobs {
		own[job.Name] = job
	}
	follows := b.opt.Follow != nil && b.grower.OnlyOurs()
	for i, job := range l.jobs {
		had, known := own[job.Name]
		switch {
		case job.Name == "":
		case known && had.Command == job.Command:
			l.jobs[i] = had
		case !follows:
			return false
		default:
			l.jobs[i] = b.opt.Follow(job)
		}
	}
	opt := b.opt
	opt.Needs = l.needs
	return opt.checkNeeds(l.jobs) == nil
}

// grown reports whether the list is known to have more sections than were read.
func (x *exchange) grown(ctx context.Context) bool {
	grown, err := bounded.Call(ctx, func(ctx context.Context) (bool, error) { return x.grower.Grown(ctx, x.schedule.known) })
	x.note(err)
	return grown && err == nil
}

// askGrown ends an idle host's round of work if the list has grown.
func (c *claimer) askGrown() {
	if c.grower != nil && c.opt.Follow != nil && c.grower.OnlyOurs() && c.exchange.grown(c.taking) {
		c.schedule.want(c.schedule.known + 1)
	}
}

func (u *common) takes() bool { return u.taking.Err() == nil }
