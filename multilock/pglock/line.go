package pglock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const (
	// glance is how often one request sends heartbeats for all waiters of a source, and checks whether a
	// waiter has missed its turn. deaf is that where a pooler is in between, and no waiter can be notified.
	glance = 4 * time.Second
	deaf   = time.Second
	// patience is for how many seconds a ticket counts without a heartbeat.
	patience = 12
)

// alive selects tickets with a recent heartbeat. If the waiter listens, that connection must exist: it ends with
// the process.
var (
	recent = `w.seen > clock_timestamp() - interval '` + strconv.Itoa(patience) + ` seconds'`
	alive  = `(w.channel IS NULL OR ` + recent + ` AND (w.listener = 0 OR EXISTS (SELECT FROM pg_stat_get_activity(w.listener))))`
)

// Pulse implements remote.Store.
func (s *server) Pulse(context.Context, time.Duration) remote.Pulse {
	return &remote.Beats{Store: s, Wait: s.crowd.add}
}

// crowd is all waiters of a source. One connection listens for them.
type crowd struct {
	*server
	channel string

	mu    sync.Mutex
	lines map[string]remote.Wait // by their tickets

	begin func() // to listen, with the first waiter
	close func()

	listener atomic.Int64 // the server process of the connection that listens, 0 if there is none
}

func newCrowd(s *server) *crowd {
	c := &crowd{server: s, channel: "multilock_" + source.NewToken(), lines: map[string]remote.Wait{}}
	ctx, stop := context.WithCancel(context.Background())
	c.close = stop
	c.begin = sync.OnceFunc(func() {
		go c.listen(ctx)
		go c.watch(ctx)
	})
	return c
}

func (c *crowd) add(w remote.Wait) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[w.Ticket] = w
	c.begin()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.lines, w.Ticket)
	}
}

// all are the waiters.
func (c *crowd) all() []remote.Wait {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.lines))
}

func (c *crowd) tell(ticket string) {
	c.mu.Lock()
	w, waits := c.lines[ticket]
	c.mu.Unlock()
	if waits {
		w.Tell()
	}
}

// listen keeps a connection that listens. check finds what was missed in between.
func (c *crowd) listen(ctx context.Context) {
	for pause := remote.LongestPause; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		if c.attend(ctx) {
			pause = remote.LongestPause
		}
		c.listener.Store(0)
		_ = bounded.Sleep(ctx, pause)
	}
}

// attend listens until the connection breaks, and reports whether it did listen.
func (c *crowd) attend(ctx context.Context) (listened bool) {
	conn, err := c.hear(ctx)
	if err != nil {
		return false
	}
	defer hangUp(conn)
	c.listener.Store(int64(conn.PID()))
	for _, l := range c.all() {
		l.Tell()
	}
	for err == nil {
		err = conn.WaitForNotification(ctx)
	}
	return true
}

var errPooled = errors.New("a pooler is in between, behind which one cannot listen")

// hear makes a connection that listens. A pooler gives the one behind it to others in between, and
// is known by that this is not the one that the server names.
func (c *crowd) hear(ctx context.Context) (*pgconn.PgConn, error) {
	config := c.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { c.tell(n.Payload) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	answers, err := send(ctx, conn, []statement{{text: `SELECT pg_backend_pid()`}})
	if err == nil && answers[0][0].number(0) != int64(conn.PID()) {
		err = errPooled
	}
	if err == nil {
		_, err = send(ctx, conn, []statement{{text: `LISTEN ` + quoted(c.channel)}})
	}
	if err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// watch calls check from time to time.
func (c *crowd) watch(ctx context.Context) {
	for {
		pause := deaf
		if c.listener.Load() != 0 {
			pause = glance
		}
		if bounded.Sleep(ctx, pause) != nil {
			return
		}
		if lines := c.all(); len(lines) > 0 {
			c.check(ctx, lines)
		}
	}
}

// check sends heartbeats for all tickets. It wakes waiters that have lost theirs, and those that are first and were
// not notified.
func (c *crowd) check(ctx context.Context, lines []remote.Wait) {
	answers, _, err := c.request(ctx, false, 0, func() []statement {
		return []statement{
			c.sql(`UPDATE @entry SET seen = clock_timestamp(), listener = $2::int WHERE channel = $1`, c.channel, c.listener.Load()),
			c.sql(`DELETE FROM @entry WHERE key IN (SELECT key FROM @entry w WHERE channel IS NOT NULL AND NOT ` + recent + ` FOR UPDATE SKIP LOCKED)`),
			c.sql(`SELECT me.key, coalesce(l.created, 0), NOT EXISTS (SELECT FROM @entry w WHERE w.key >= me.line AND w.key < rtrim(me.line, '/') || '0' AND w.created < me.created AND `+alive+`)
				FROM (SELECT key, created, regexp_replace(key, '[^/]*$', '') AS line FROM @entry WHERE channel = $1) me
				LEFT JOIN @entry l ON l.key = regexp_replace(me.key, 'wait/([^/]*/[^/]*)/[^/]*$', 'lock/\1')`, c.channel),
		}
	})
	if err != nil {
		return
	}
	places := map[string]row{}
	for _, r := range answers[2] {
		places[r.text(0)] = r
	}
	for _, w := range lines {
		place, there := places[w.Ticket]
		// The lock has another holder; or it is free, because the waiter ahead has died.
		if !there || place.is(2) && (place.number(1) == 0 || place.number(1) != w.Held) {
			w.Tell()
		}
	}
}
