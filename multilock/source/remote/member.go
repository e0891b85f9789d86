package remote

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Member is a process that uses the locks of a group, for embedding in a source.
type Member struct {
	pkg, group, user string
	self             process.Identity
}

// Options select the locks of a process. P describes their location.
type Options[P any] struct {
	Place P
	// Group is the lock group; the empty name is a group like any other.
	Group string
	// User is recorded in the history with broken locks, for users.
	User string
	// Self is the identity of the calling process, determined if zero. For tests.
	Self process.Identity
}

// Join returns the Member. The error is source.ErrInvalid for a bad group name.
func (o Options[P]) Join(pkg string) (Member, error) {
	group, self := o.Group, o.Self
	if group != "" {
		if err := source.CheckElement("lock group", group); err != nil {
			return Member{}, err
		}
	}
	if self == (process.Identity{}) {
		var err error
		if self, err = process.Self(); err != nil {
			return Member{}, &source.OpError{Source: pkg, Op: "identify this process", Err: err}
		}
	}
	return Member{pkg: pkg, group: group, user: o.User, self: self}, nil
}

// Self returns the identity of the calling process.
func (m Member) Self() process.Identity { return m.self }

// Group returns the name of the lock group.
func (m Member) Group() string { return m.group }

// Ungrouped returns the same member in the group "".
func (m Member) Ungrouped() Member {
	m.group = ""
	return m
}

// CheckName implements source.NameChecker.
func (m Member) CheckName(name string) error { return source.CheckElement("lock name", name) }

// Broke returns the event that this member has broken the lock of a record.
func (m Member) Broke(r source.Record, why string) []source.Event {
	return []source.Event{source.BrokeEvent(r, m.self, m.user, why)}
}

// Record does nothing, for sources without a history.
func (m Member) Record(context.Context, []source.Event) error { return nil }

// Named wraps an error of a step that is not the server's.
func (m Member) Named(ctx context.Context, op, name string, err error) error {
	return OpError(ctx, source.OpError{Source: m.pkg, Op: op, Name: name, Err: err})
}

// ReadResult returns the last result of a name, whose text read returns.
func (m Member) ReadResult(name string, read func() ([]byte, error)) (source.Result, error) {
	if err := m.CheckName(name); err != nil {
		return source.Result{}, err
	}
	text, err := read()
	if err != nil {
		return source.Result{}, err
	}
	return resultOf(name, text)
}

// Alike returns the guarantees that all sources on servers have in common.
func (m Member) Alike() []source.Guarantee {
	return []source.Guarantee{
		source.GuaranteeOfDeath(m.self),
		source.GuaranteeOfJobs("in the lock's record"),
		source.Keeps(source.TraitBreakByForce, "by its name, or by one acquisition's token; the holder notices at its next heartbeat"),
	}
}

// FindClock compares the server's clock with this host's. No lock depends on it; it helps users to
// compare logs.
func FindClock(now time.Time) source.Finding {
	differ := time.Since(now).Round(time.Millisecond)
	return source.Fine("clock", fmt.Sprintf("this host's clock and the server's differ by %s; locks do not depend on that", differ.Abs()))
}

// Wake implements source.Group for servers without notifications.
func (m Member) Wake() (news <-chan struct{}, stop func()) { return nil, func() {} }

// Tidy implements source.Group for sources where a crash leaves nothing but a lock.
func (m Member) Tidy(_ context.Context, name string) error { return m.CheckName(name) }

// Summaries converts counts of held locks by group, sorted by group.
func Summaries(held map[string]int) []source.GroupSummary {
	var groups []source.GroupSummary
	for name, n := range held {
		groups = append(groups, source.GroupSummary{Name: name, Held: n})
	}
	slices.SortFunc(groups, func(a, b source.GroupSummary) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}
