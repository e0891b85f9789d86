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
	// checkEvery is how often one request sends heartbeats for all waiters of a source, and checks
	// whether a waiter has missed its turn. checkEveryPooled is the same behind a connection
	// pooler, where no waiter can be notified.
	checkEvery       = 4 * time.Second
	checkEveryPooled = time.Second
	// ticketSeconds is how long a ticket is valid without a heartbeat, in seconds.
	ticketSeconds = 12
)

// alive selects tickets with a recent heartbeat. If the waiter listens, its connection must exist
// as well, because that ends with the process.
var (
	recent = `w.seen > clock_timestamp() - interval '` + strconv.Itoa(ticketSeconds) + ` seconds'`
	alive  = `(w.channel IS NULL OR ` + recent + ` AND (w.listener = 0 OR EXISTS (SELECT FROM pg_stat_get_activity(w.listener))))`
)

// Pulse implements remote.Store.
func (s *server) Pulse(context.Context, time.Duration) remote.Pulse {
	return &remote.Beats{Store: s, Wait: s.waiters.add}
}

// waiters holds the waiters of a source. One connection listens for all of them.
type waiters struct {
	*server
	channel string

	mu    sync.Mutex
	lines map[string]remote.Wait // by ticket

	begin func() // starts to listen, with the first waiter
	close func()

	listener atomic.Int64 // the server process of the connection that listens, 0 if there is none
}

func newWaiters(s *server) *waiters {
	ws := &waiters{server: s, channel: "multilock_" + source.NewToken(), lines: map[string]remote.Wait{}}
	ctx, stop := context.WithCancel(context.Background())
	ws.close = stop
	ws.begin = sync.OnceFunc(func() {
		go ws.listen(ctx)
		go ws.watch(ctx)
	})
	return ws
}

func (ws *waiters) add(w remote.Wait) (remove func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.lines[w.Ticket] = w
	ws.begin()
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(ws.lines, w.Ticket)
	}
}

// all returns the waiters.
func (ws *waiters) all() []remote.Wait {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Collect(maps.Values(ws.lines))
}

func (ws *waiters) tell(ticket string) {
	ws.mu.Lock()
	w, waits := ws.lines[ticket]
	ws.mu.Unlock()
	if waits {
		w.Tell()
	}
}

// listen maintains a connection that listens. check finds what was missed in between.
func (ws *waiters) listen(ctx context.Context) {
	for pause := remote.LongestPause; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		if ws.listenOnce(ctx) {
			pause = remote.LongestPause
		}
		ws.listener.Store(0)
		_ = bounded.Sleep(ctx, pause)
	}
}

// listenOnce listens until the connection breaks, and reports whether it did listen.
func (ws *waiters) listenOnce(ctx context.Context) (listened bool) {
	conn, err := ws.connect(ctx)
	if err != nil {
		return false
	}
	defer hangUp(conn)
	ws.listener.Store(int64(conn.PID()))
	for _, l := range ws.all() {
		l.Tell()
	}
	for err == nil {
		err = conn.WaitForNotification(ctx)
	}
	return true
}

var errPooled = errors.New("a pooler is in between, behind which one cannot listen")

// connect makes a connection that listens. Through a pooler that is impossible, because it shares
// its connections among clients. A pooler is recognised by the connection's process ID, which is
// not that of the server process.
func (ws *waiters) connect(ctx context.Context) (*pgconn.PgConn, error) {
	config := ws.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { ws.tell(n.Payload) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	answers, err := send(ctx, conn, []statement{{text: `SELECT pg_backend_pid()`}})
	if err == nil && answers[0][0].number(0) != int64(conn.PID()) {
		err = errPooled
	}
	if err == nil {
		_, err = send(ctx, conn, []statement{{text: `LISTEN ` + quoted(ws.channel)}})
	}
	if err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// watch calls check periodically.
func (ws *waiters) watch(ctx context.Context) {
	for {
		pause := checkEveryPooled
		if ws.listener.Load() != 0 {
			pause = checkEvery
		}
		if bounded.Sleep(ctx, pause) != nil {
			return
		}
		if lines := ws.all(); len(lines) > 0 {
			ws.check(ctx, lines)
		}
	}
}

// check sends heartbeats for all tickets. It wakes waiters whose ticket has expired, and the first
// ones if they missed a notification.
func (ws *waiters) check(ctx context.Context, lines []remote.Wait) {
	answers, _, err := ws.request(ctx, false, 0, func() []statement {
		return []statement{
			ws.sql(`UPDATE @entry SET seen = clock_timestamp(), listener = $2::int WHERE channel = $1`, ws.channel, ws.listener.Load()),
			ws.sql(`DELETE FROM @entry WHERE key IN (SELECT key FROM @entry w WHERE channel IS NOT NULL AND NOT ` + recent + ` FOR UPDATE SKIP LOCKED)`),
			ws.sql(`SELECT me.key, coalesce(l.created, 0), NOT EXISTS (SELECT FROM @entry w WHERE w.key >= me.line AND w.key < rtrim(me.line, '/') || '0' AND w.created < me.created AND `+alive+`)
				FROM (SELECT key, created, regexp_replace(key, '[^/]*$', '') AS line FROM @entry WHERE channel = $1) me
				LEFT JOIN @entry l ON l.key = regexp_replace(me.key, 'wait/([^/]*/[^/]*)/[^/]*$', 'lock/\1')`, ws.channel),
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
