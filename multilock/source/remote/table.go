package remote

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// Table is a lock group in a store. It is a source.Source with all [Abilities]; a driver embeds it
// in its own source. Keys are KIND/GROUP/NAME; those of a queue's tickets begin with
// queue/GROUP/NAME/.
type Table struct {
	Member
	store  Store
	limits Limits
	root   string // prefix of all keys
	silent bool   // its locks have no history
}

// Abilities are the interfaces that a source with a Table implements.
type Abilities interface {
	source.NameChecker
	source.GroupLister
	source.QueueLister
	source.Known
	source.Ledger
	source.Journal
	source.Retention
	source.ManifestStore
	source.Registrar
}

// Limits are the limits of a store.
type Limits struct {
	Value   int           // bytes of a value
	Parts   int           // maximum number of values of a list
	Unheard time.Duration // how long a waiter without notification sends no request
	// Unordered means that waiters have no tickets: each polls, and the first to ask acquires the lock.
	Unordered bool
	Server    string // its name in errors
}

// NewTable returns the table of a member's group. All its keys begin with root.
func NewTable(m Member, store Store, root string, limits Limits) Table {
	return Table{Member: m, store: store, limits: limits, root: root}
}

// The kinds of keys.
const (
	lockKind     = "lock"   // the holder's record
	lifeKind     = "life"   // the holder's heartbeat, if a store keeps it in a separate entry
	waitKind     = "wait"   // the tickets of waiters
	brokeKind    = "broke"  // the token of the last broken lock
	resultKind   = "result" // how the last job ended
	changesKind  = "changes"
	manifestKind = "manifest"
	historyKind  = "history"
	dayKind      = "day"   // how many days the history has: see journal.go
	queueKind    = "queue" // the tickets of --fair
	registerKind = "register"
)

const separator = "/"

// all is the prefix of the group's keys of a kind.
func (t *Table) all(kind string) string {
	return t.root + kind + separator + t.Group() + separator
}

func (t *Table) key(kind, name string) string { return t.all(kind) + name }

// show reads ranges as of one instant.
func (t *Table) show(ctx context.Context, op, name string, ranges ...Range) (Applied, error) {
	return t.apply(ctx, op, name, Txn{Show: ranges})
}

// apply carries out a transaction. Its error names the step.
func (t *Table) apply(ctx context.Context, op, name string, txn Txn) (Applied, error) {
	a, err := t.store.Apply(ctx, txn)
	return a, t.store.OpError(ctx, op, name, err)
}

// get reads one entry, nil if there is none.
func (t *Table) get(ctx context.Context, op, name, key string) (*Entry, error) {
	a, err := t.show(ctx, op, name, Range{Key: key})
	if err != nil {
		return nil, err
	}
	return a.first(0), nil
}

// names lists, sorted, the names for which the group has an entry of a kind.
func (t *Table) names(ctx context.Context, op, kind string) (names []string, err error) {
	a, err := t.show(ctx, op, "", Range{Key: t.all(kind), Below: true, Keys: true})
	if err != nil {
		return nil, err
	}
	for _, e := range a.Found[0] {
		if name := strings.TrimPrefix(e.Key, t.all(kind)); t.CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// Names implements source.Source.
func (t *Table) Names(ctx context.Context) ([]string, error) {
	return t.names(ctx, "list the locks", lockKind)
}

// Empty implements source.Group.
func (t *Table) Empty(ctx context.Context) (bool, error) {
	held, err := t.any(ctx, "ask whether the lock group is empty", lockKind)
	return err == nil && !held, err
}

// Known implements source.Known.
func (t *Table) Known(ctx context.Context) (bool, error) {
	return t.any(ctx, "ask whether the lock group is known", lockKind, resultKind, changesKind, manifestKind, historyKind)
}

// any reports whether the group has an entry of one of these kinds.
func (t *Table) any(ctx context.Context, op string, kinds ...string) (bool, error) {
	var ranges []Range
	for _, kind := range kinds {
		ranges = append(ranges, Range{Key: t.all(kind), Below: true, Keys: true, Limit: 1})
	}
	a, err := t.show(ctx, op, "", ranges...)
	for _, found := range a.Found {
		if len(found) > 0 {
			return true, err
		}
	}
	return false, err
}

// Wake implements source.Group.
func (t *Table) Wake() (news <-chan struct{}, stop func()) {
	return t.store.Removals(t.all(lockKind), true)
}

// Groups implements source.GroupLister: groups that have locks, or had results or a history.
func (t *Table) Groups(ctx context.Context) ([]source.GroupSummary, error) {
	each := []int{1, 0, 0} // only locks count as held
	var ranges []Range
	for _, kind := range []string{lockKind, changesKind, dayKind} {
		ranges = append(ranges, Range{Key: t.root + kind + separator, Below: true, Keys: true})
	}
	a, err := t.show(ctx, "list the lock groups", "", ranges...)
	if err != nil {
		return nil, err
	}
	held := map[string]int{}
	for i, found := range a.Found {
		for _, e := range found {
			group, _, _ := strings.Cut(strings.TrimPrefix(e.Key, ranges[i].Key), separator)
			held[group] += each[i]
		}
	}
	return Summaries(held), nil
}

// line is the queue of a lock: its tickets are the locks of a table.
type line struct{ Table }

// Queue implements source.Queueing: the tickets are locks in a separate table. (Waiters of one lock
// are served in order anyway; a queue may be for several locks.)
func (t *Table) Queue(name string) (source.Queue, error) {
	tickets := line{*t}
	tickets.Member, tickets.root, tickets.silent = t.Ungrouped(), t.key(queueKind, name)+separator, true
	return &tickets, t.CheckName(name)
}

// Left implements source.Queue.
func (l *line) Left(ticket string) (news <-chan struct{}, stop func()) {
	return l.store.Removals(l.key(lockKind, ticket), false)
}

// Close implements source.Queue. The connections belong to the source.
func (l *line) Close() error { return nil }

// Queues implements source.QueueLister.
func (t *Table) Queues(ctx context.Context) (queues []string, err error) {
	a, err := t.show(ctx, "list the queues", "", Range{Key: t.all(queueKind), Below: true, Keys: true})
	if err != nil {
		return nil, err
	}
	for _, e := range a.Found[0] {
		name, rest, _ := strings.Cut(strings.TrimPrefix(e.Key, t.all(queueKind)), separator)
		if strings.HasPrefix(rest, lockKind+separator) && (len(queues) == 0 || queues[len(queues)-1] != name) {
			queues = append(queues, name)
		}
	}
	return queues, nil
}

// touch changes the stamp of Revision.
func (t *Table) touch() Write { return Write{Key: t.all(changesKind), Value: []byte{}, Shared: true} }

// Result implements source.Ledger.
func (t *Table) Result(ctx context.Context, name string) (source.Result, error) {
	return t.ReadResult(name, func() ([]byte, error) {
		e, err := t.get(ctx, "read the result", name, t.key(resultKind, name))
		return valueOf(e), err
	})
}

// Results implements source.Ledger.
func (t *Table) Results(ctx context.Context) ([]string, error) {
	return t.names(ctx, "list the results", resultKind)
}

// Revision implements source.Ledger with the revisions of the entries that every change of a result
// writes.
func (t *Table) Revision(ctx context.Context) (stamp string, err error) {
	a, err := t.show(ctx, "look at the results", "", Range{Key: t.all(changesKind), Below: true})
	if err != nil {
		return "", err
	}
	for _, e := range a.Found[0] {
		stamp += " " + strconv.FormatInt(e.Changed, 10)
	}
	return strings.TrimSpace(stamp), nil
}

// Try writes an entry, reads it and removes it, for source.Examiner.
func (t *Table) Try(ctx context.Context) error {
	const op = "write and read an entry"
	key := t.root + "doctor"
	_, err := t.apply(ctx, op, "", Txn{Then: []Write{{Key: key, Value: []byte{}}}, Show: []Range{{Key: key}}})
	if err == nil {
		_, err = t.apply(ctx, op, "", Txn{Then: []Write{{Key: key}}})
	}
	return err
}
