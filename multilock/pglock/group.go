package pglock

import (
	"context"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.Group       = (*Source)(nil)
	_ source.Known       = (*Source)(nil)
	_ source.GroupLister = (*Source)(nil)
	_ source.QueueLister = (*Source)(nil)
)

// Vacant implements source.Group.
func (s *Source) Vacant(ctx context.Context) (bool, error) {
	return s.holds(ctx, "ask whether the lock group is empty", `SELECT NOT EXISTS (SELECT FROM @lock WHERE grp = $1)`)
}

// Known implements source.Known.
func (s *Source) Known(ctx context.Context) (bool, error) {
	return s.holds(ctx, "ask whether the lock group is known", `SELECT EXISTS (SELECT FROM @lock WHERE grp = $1)
		OR EXISTS (SELECT FROM @result WHERE grp = $1) OR EXISTS (SELECT FROM @list WHERE grp = $1) OR EXISTS (SELECT FROM @history WHERE grp = $1)`)
}

func (s *Source) holds(ctx context.Context, op, query string) (bool, error) {
	answers, err := s.list(ctx, op, query)
	return err == nil && answers[0] == "t", err
}

// Groups implements source.GroupLister. Those of queues have a slash, which no other has.
func (s *Source) Groups(ctx context.Context) ([]source.GroupSummary, error) {
	rows, err := s.ask(ctx, "list the lock groups", "", s.sql(`SELECT grp, (SELECT count(*) FROM @lock l WHERE l.grp = g.grp)
		FROM (SELECT grp FROM @lock UNION SELECT grp FROM @result UNION SELECT grp FROM @list UNION SELECT grp FROM @history) g WHERE strpos(grp, '/') = 0`))
	held := map[string]int{}
	for _, r := range rows {
		held[r.text(0)] = int(r.number(1))
	}
	return remote.Summaries(held), err
}

// Queue implements source.Queueing. (Who waits for one lock is served in order anyhow; a queue may
// be the line for several.) Its tickets are locks of a group of their own.
func (s *Source) Queue(name string) (source.Queue, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return queue{&Source{Member: s.Member, server: s.server, crowd: s.crowd, group: "queue/" + s.group + "/" + name, quiet: true}}, nil
}

// Queues implements source.QueueLister.
func (s *Source) Queues(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the queues", `SELECT DISTINCT substr(grp, length(q.prefix) + 1)
		FROM @lock, (SELECT 'queue/' || $1 || '/' AS prefix) q WHERE starts_with(grp, q.prefix) ORDER BY 1`)
}

// queue is a source of tickets.
type queue struct{ *Source }

// Left implements source.Queue: nobody tells.
func (q queue) Left(string) (news <-chan struct{}, stop func()) { return q.Wake() }

// Close implements source.Queue. The connections are the source's.
func (q queue) Close() error { return nil }
