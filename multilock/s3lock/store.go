package s3lock

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var _ remote.Store = (*server)(nil)

// change is a transaction that is being carried out. All its tries have one token, so an earlier one
// that was carried out without an answer is recognised.
type change struct {
	*server
	txn    remote.Txn
	on     string // the object of its conditions, and of its writes to fields; "" without
	token  string
	tried  bool             // a write was sent
	won    bool             // and that was for the case that the conditions hold
	doubt  bool             // and its answer was lost
	open   bool             // and was refused: a proxy may have sent it twice, so only a read shows the outcome
	from   stored           // the object that it replaces
	since  boottime.Instant // before the write that was carried out, as far as is known
	over   bool             // the object is as the transaction leaves it
	done   bool
	now    stored
	listed map[string][]listed
}

// Apply implements remote.Store. What a transaction changes in one object is written by one
// conditional write; its other writes come after that. They are of objects that no other
// transaction changes.
func (s *server) Apply(ctx context.Context, t remote.Txn) (a remote.Applied, err error) {
	c := &change{server: s, txn: t, on: objectOf(t), token: source.NewToken()}
	if len(t.Then) > 0 {
		if err := s.ready(ctx); err != nil {
			return a, err
		}
	}
	_, err = s.repeat(ctx, t.Limit, func(ctx context.Context) (err error) {
		c.listed = map[string][]listed{}
		if !c.tried {
			c.since = boottime.Now()
		}
		if c.on != "" && !c.over {
			if err := c.conclude(ctx); err != nil {
				return err
			}
			c.over = true
		}
		if err := c.follow(ctx); err != nil {
			c.doubt = c.doubt || inDoubt(err)
			return err
		}
		a.Found, err = c.show(ctx)
		return err
	})
	c.doubt = c.doubt || c.open
	if err != nil && c.doubt && c.on != "" {
		s.mu.Lock()
		s.doubtful[c.on] = c.from.etag
		s.mu.Unlock()
	}
	a.Done, a.Doubt, a.Since = c.on == "" || c.done, c.doubt, c.since
	return a, err
}

// objectOf returns the object that a transaction is about.
func objectOf(t remote.Txn) string {
	for _, c := range t.If {
		if f := fieldOf(c.Key); f.name != "" && c.Field != remote.IfFirst {
			return f.object
		}
	}
	for _, w := range t.Then {
		if f := fieldOf(w.Key); f.name != "" {
			return f.object
		}
	}
	return ""
}

// conclude decides whether the conditions hold, and makes the change. The first try may rely on what
// this process has written last: the store refuses the write if that was replaced. An answer that
// the conditions do not hold needs a new read.
func (c *change) conclude(ctx context.Context) (err error) {
	fresh := false
	c.mu.Lock()
	now, known := c.known[c.on]
	c.mu.Unlock()
	if known && !c.tried {
		c.now = now
	} else {
		fresh = true
		if c.now, err = c.read(ctx, c.on); err != nil {
			return err
		}
	}
	for pause := shortest; ; pause = min(2*pause, remote.LongestPause) {
		c.open = false
		if c.tried && c.now.Write == c.token { // carried out, and the answer was lost
			c.done = c.won
			return nil
		}
		c.doubt = c.doubt || c.tried && c.now.mayHave(c.token, c.from.Revision)
		next, done, changed, err := c.evaluate(ctx)
		switch {
		case err != nil:
			return err
		case changed, fresh && c.isDoubtful():
			err = c.send(ctx, next, done)
		case fresh:
			c.done = done
			return nil
		}
		if changed && err == nil {
			return c.verify(ctx)
		}
		if err != nil && !isConflict(err) {
			return err
		}
		if err != nil {
			if err := bounded.Sleep(ctx, jitter(pause)); err != nil {
				return err
			}
		}
		fresh = true
		if c.now, err = c.read(ctx, c.on); err != nil {
			return err
		}
	}
}

// evaluate returns the object that the transaction leaves, and whether that differs.
func (c *change) evaluate(ctx context.Context) (next object, done, changed bool, err error) {
	done, next = true, c.now.next(c.token)
	for _, cond := range c.txn.If {
		switch f := fieldOf(cond.Key); {
		case f.object == c.on:
			done = done && c.now.holds(f.name, cond)
		case cond.Field == remote.IfExists:
			text, _, err := c.text(ctx, f.object)
			if err != nil {
				return next, false, false, err
			}
			done = done && text != nil
		}
	}
	for _, w := range c.writes(done) {
		f := fieldOf(w.Key)
		switch {
		case f.object == c.on:
			changed = next.put(f.name, w) || changed
		case w.Below && strings.HasPrefix(c.on, escape(w.Key)):
			changed = next.put(valueField, remote.Write{}) || changed
		}
	}
	return next, done, changed, nil
}

func (c *change) writes(done bool) []remote.Write {
	if done {
		return c.txn.Then
	}
	return c.txn.Else
}

// send replaces the object that was read.
func (c *change) send(ctx context.Context, next object, done bool) error {
	c.tried, c.won, c.from = true, done, c.now
	start := boottime.Now()
	etag, err := c.write(ctx, c.on, next.encode(), c.now.etag)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, c.on)
	if err != nil {
		c.doubt, c.open = c.doubt || inDoubt(err), !isUnsent(err) && (isConflict(err) || passes(err))
		return err
	}
	delete(c.doubtful, c.on) // a write that names the ETag before comes too late
	c.since, c.done, c.now = start, done, stored{object: next, etag: etag, written: c.now.written}
	if next.Fields[lockField] != nil {
		c.known[c.on] = c.now
	}
	return nil
}

// isDoubtful reports whether an earlier write without an answer may still replace the object as it
// is. Then it is written again as it is, so that the earlier write fails from now on.
func (c *change) isDoubtful() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	etag, doubtful := c.doubtful[c.on]
	return doubtful && etag == c.now.etag
}

// verify checks once more that the other objects of the conditions exist: one that is being removed
// was there just before.
func (c *change) verify(ctx context.Context) error {
	if !c.done {
		return nil
	}
	for _, cond := range c.txn.If {
		f := fieldOf(cond.Key)
		if cond.Field != remote.IfExists || f.object == c.on {
			continue
		}
		text, _, err := c.text(ctx, f.object)
		if err != nil {
			return err
		}
		if text == nil {
			undone := c.now.next(source.NewToken())
			for _, w := range c.txn.Then {
				undone.put(fieldOf(w.Key).name, remote.Write{})
			}
			return c.send(ctx, undone, false)
		}
	}
	return nil
}

// follow makes the writes to other objects.
func (c *change) follow(ctx context.Context) error {
	for _, w := range c.writes(c.on == "" || c.done) {
		switch f := fieldOf(w.Key); {
		case w.Below:
			if err := c.removeBelow(ctx, escape(w.Key)); err != nil {
				return err
			}
		case f.object == "" || f.name != "":
		case w.Value != nil:
			if _, err := c.write(ctx, f.object, w.Value, always); err != nil {
				return err
			}
		default:
			if err := c.remove(ctx, f.object); err != nil {
				return err
			}
		}
	}
	if strings.HasPrefix(c.on, "queue/") && c.done && c.now.etag != "" && len(c.now.Fields) == 0 {
		return c.remove(ctx, c.on) // no ticket of that name follows
	}
	return nil
}

// removeBelow removes the objects below a prefix, except those that are newer than the object that
// decided about it: another process writes them for what it publishes next.
func (c *change) removeBelow(ctx context.Context, prefix string) error {
	all, err := c.list(ctx, prefix, "", 0)
	if err != nil {
		return err
	}
	return parallel.Do(width, len(all), func(i int) error {
		key, _ := unescape(all[i].name)
		if fieldOf(key).name != "" || c.on != "" && all[i].written.Truncate(time.Second).After(c.now.written) {
			return nil
		}
		return c.remove(ctx, all[i].name)
	})
}

// show reads the ranges. What the transaction has just written or read is not read again.
func (c *change) show(ctx context.Context) (found [][]remote.Entry, err error) {
	objects := map[string]stored{}
	if c.on != "" {
		objects[c.on] = c.now
	}
	for _, r := range c.txn.Show {
		f := fieldOf(r.Key)
		var entries []remote.Entry
		switch {
		case r.Below:
			entries, err = c.below(ctx, r)
		case f.object == "":
		case f.name == "":
			entries, err = c.whole(ctx, r.Key)
		default:
			o, there := objects[f.object]
			if !there {
				o, err = c.read(ctx, f.object)
				objects[f.object] = o
			}
			if e := o.Fields[f.name]; e != nil {
				entries = append(entries, o.entry(r.Key, e))
			}
		}
		if err != nil {
			return nil, err
		}
		found = append(found, entries)
	}
	return found, nil
}

// entry returns a field as an entry. The store's clock has dated it, to a second; waiters watch the
// heartbeats by their own.
func (o stored) entry(key string, e *entry) remote.Entry {
	return remote.Entry{Key: key, Value: e.value(), Created: e.Created, Changed: e.Changed, Version: e.Version, Beats: e.Beats, Age: source.Unknown, Silence: o.silence}
}

// whole reads an object that is written once.
func (s *server) whole(ctx context.Context, key string) ([]remote.Entry, error) {
	text, info, err := s.text(ctx, fieldOf(key).object)
	if err != nil || text == nil {
		return nil, err
	}
	at := info.written.UnixMicro()
	return []remote.Entry{{Key: key, Value: text, Created: at, Changed: at, Version: 1, Age: source.Unknown, Silence: info.silence}}, nil
}

// Removals implements remote.Store. A bucket reports none.
func (s *server) Removals(string, bool) (news <-chan struct{}, stop func()) { return nil, func() {} }

// Pulse implements remote.Store.
func (s *server) Pulse(context.Context, time.Duration) remote.Pulse { return &remote.Beats{Store: s} }

// Stop implements remote.Store: a holder depends on nothing but its object.
func (s *server) Stop(int64) {}

// feed lists the names again and again.
type feed struct {
	*server
	below, from string
	seen        map[string]bool
}

// Feed implements remote.Store.
func (s *server) Feed(below, from string) remote.Feed {
	return &feed{s, below, from, map[string]bool{}}
}

// Next implements remote.Feed. If there are no new entries, it takes a request for each thousand.
func (f *feed) Next(ctx context.Context) (entries []remote.Entry, err error) {
	a, err := f.Apply(ctx, remote.Txn{Show: []remote.Range{{Key: f.below, Below: true, From: f.from, Keys: true}}})
	if err != nil {
		return nil, err
	}
	added := slices.DeleteFunc(a.Found[0], func(e remote.Entry) bool { return f.seen[e.Key] })
	if entries, err = f.values(ctx, added); err != nil {
		return nil, err
	}
	for _, e := range entries {
		f.seen[e.Key] = true
	}
	return entries, nil
}

// Close implements remote.Feed.
func (f *feed) Close() error { return nil }
