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
	// glance is how often one request gives signs of life for all who wait through a source, and
	// looks whether it is somebody's turn: that is what is left if nobody tells. It is deaf where a
	// pooler is in between, so that nobody can.
	glance = 4 * time.Second
	deaf   = time.Second
	// patience is for how many seconds a place in the line is kept without a sign of life.
	patience = 12
	unheard  = 10 * time.Minute
)

// waits finds who waits and has given a sign of life; if he listens, that connection has to stand:
// with a process that ends its connections end.
var (
	recent = `w.seen > clock_timestamp() - interval '` + strconv.Itoa(patience) + ` seconds'`
	waits  = recent + ` AND (w.listener = 0 OR EXISTS (SELECT FROM pg_stat_get_activity(w.listener)))`
)

// tellNext tells the first who waits, if the lock is free.
func (s *Source) tellNext(name string) statement {
	return s.sql(`SELECT pg_notify(w.channel, w.mark) FROM (SELECT channel, mark FROM @wait w WHERE w.grp = $1 AND w.name = $2 AND `+waits+` ORDER BY id LIMIT 1) w
		WHERE NOT EXISTS (SELECT FROM @lock WHERE grp = $1 AND name = $2)`, s.group, name)
}

// leave takes somebody out of the line.
func (s *server) leave(mark string) statement {
	return s.sql(`DELETE FROM @wait WHERE mark = $1`, mark)
}

// line is a contender's place among those who wait. Of the nil pointer nobody waits.
type line struct {
	*remote.News
	crowd *crowd
	mark  string

	mu    sync.Mutex
	token string // whose the lock was when it was refused last
}

func (l *line) refused(token string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.token = token
	l.mu.Unlock()
	l.crowd.add(l)
	l.Refused()
}

func (l *line) leave() {
	if l != nil {
		l.crowd.remove(l)
	}
}

// Wake implements source.Contender: from now on this contender waits.
func (c *contender) Wake() <-chan struct{} {
	if c.waiting == nil {
		c.waiting = &line{News: remote.NewNews(unheard), crowd: c.src.crowd, mark: source.NewToken()}
		c.News = c.waiting.News
		c.src.crowd.add(c.waiting) // it begins to listen
	}
	return c.waiting.Wake()
}

// crowd is all who wait through a source. One connection listens for them.
type crowd struct {
	*server
	channel string

	mu    sync.Mutex
	lines map[string]*line // by their marks

	begin func() // to listen, with the first who waits
	close func()

	listener atomic.Int64 // the server's number for the connection that listens, 0 if nobody can tell
}

func newCrowd(s *server) *crowd {
	c := &crowd{server: s, channel: "multilock_" + source.NewToken(), lines: map[string]*line{}}
	ctx, stop := context.WithCancel(context.Background())
	c.close = stop
	c.begin = sync.OnceFunc(func() {
		go c.listen(ctx)
		go c.watch(ctx)
	})
	return c
}

func (c *crowd) add(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[l.mark] = l
	c.begin()
}

func (c *crowd) remove(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lines, l.mark)
}

// all are those who wait now.
func (c *crowd) all() []*line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.lines))
}

func (c *crowd) tell(mark string) {
	c.mu.Lock()
	l := c.lines[mark]
	c.mu.Unlock()
	if l != nil {
		l.Tell()
	}
}

// listen hears who is told. What it may have missed each finds out by asking.
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
	if err == nil && answers[0].rows[0].number(0) != int64(conn.PID()) {
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

// watch gives signs of life for all who wait, and looks whether somebody was not told.
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

// check tells those who have lost their place, and the first if the lock has passed on.
func (c *crowd) check(ctx context.Context, lines []*line) {
	answers, err := c.do(ctx, "wait", "",
		c.sql(`UPDATE @wait SET seen = clock_timestamp(), listener = $2::int WHERE channel = $1`, c.channel, c.listener.Load()),
		c.sql(`DELETE FROM @wait WHERE mark IN (SELECT mark FROM @wait w WHERE NOT `+recent+` FOR UPDATE SKIP LOCKED)`),
		c.sql(`SELECT me.mark, l.token, NOT EXISTS (SELECT FROM @wait w WHERE w.grp = me.grp AND w.name = me.name AND w.id < me.id AND `+waits+`)
			FROM @wait me LEFT JOIN @lock l ON l.grp = me.grp AND l.name = me.name WHERE me.channel = $1`, c.channel))
	if err != nil {
		return
	}
	places := map[string]row{}
	for _, r := range answers[2].rows {
		places[r.text(0)] = r
	}
	for _, l := range lines {
		l.mu.Lock()
		seen := l.token
		l.mu.Unlock()
		place, there := places[l.mark]
		// The lock has passed on; or it is free, and was, for whoever was ahead is no more.
		if !there || place.is(2) && (place.isNull(1) || place.text(1) != seen) {
			l.Tell()
		}
	}
}
