package remote

import (
	"cmp"
	"context"
	"slices"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Member is who uses the locks of a group, for embedding in a source.
type Member struct {
	group, user string
	self        process.Identity
}

// Join is a member of a group; "" is a group like any other. user is for people. A zero self is
// the calling process. The error is source.ErrInvalid for a group that cannot be one.
func Join(pkg, group, user string, self process.Identity) (Member, error) {
	if group != "" {
		if err := source.CheckElement("lock group", group); err != nil {
			return Member{}, err
		}
	}
	if self == (process.Identity{}) {
		var err error
		if self, err = process.Self(); err != nil {
			return Member{}, &source.OpError{Source: pkg, Op: "find out who this process is", Err: err}
		}
	}
	return Member{group: group, user: user, self: self}, nil
}

// Self is who the calling process is.
func (m Member) Self() process.Identity { return m.self }

// Group is the name of the lock group.
func (m Member) Group() string { return m.group }

// Ungrouped is the same member in the group "".
func (m Member) Ungrouped() Member {
	m.group = ""
	return m
}

// CheckName implements source.NameChecker.
func (m Member) CheckName(name string) error { return source.CheckElement("lock name", name) }

// Broke is the event that this member has broken the lock of a record.
func (m Member) Broke(r source.Record, why string) []source.Event {
	return []source.Event{source.BrokeEvent(r, m.self, m.user, why)}
}

// Tidy implements source.Group for sources where a crash leaves nothing beside a lock.
func (m Member) Tidy(_ context.Context, name string) error { return m.CheckName(name) }

// Summaries are groups with how many locks are held in each, sorted.
func Summaries(held map[string]int) []source.GroupSummary {
	var groups []source.GroupSummary
	for name, n := range held {
		groups = append(groups, source.GroupSummary{Name: name, Held: n})
	}
	slices.SortFunc(groups, func(a, b source.GroupSummary) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}
