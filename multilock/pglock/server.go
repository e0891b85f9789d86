package pglock

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source/remote"
)

// server is the client of a database.
type server struct {
	config   *pgconn.Config
	schema   string // quoted, with a dot
	named    string // unquoted
	public   string
	timeout  time.Duration
	pool     *puddle.Pool[*pgconn.PgConn]
	answered atomic.Bool // the server was reached once
	waiters  *waiters

	facts *remote.Facts[facts]
	clock clock
}

const (
	connecting = 4 * time.Second
	// mostConnections is the maximum for a source, without the connection that listens.
	mostConnections = 8
	// leaving is the time limit for closing a source or a contender.
	leaving = 1300 * time.Millisecond
)

func newServer(at Place) (*server, error) {
	config, schema, public, err := Parse(at.URL)
	if err != nil {
		return nil, err
	}
	s := &server{config: config, named: schema, schema: quoted(schema) + ".", public: public, facts: remote.NewFacts[facts]()}
	if s.timeout, err = remote.Timeout(at.Timeout, DefaultTimeout); err != nil {
		return nil, err
	}
	config.ValidateConnect = writable
	s.waiters = newWaiters(s)
	s.pool, err = puddle.NewPool(&puddle.Config[*pgconn.PgConn]{
		MaxSize: mostConnections,
		Constructor: func(ctx context.Context) (*pgconn.PgConn, error) {
			return pgconn.ConnectConfig(ctx, config)
		},
		Destructor: hangUp,
	})
	return s, err
}

func hangUp(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), leaving/2)
	defer cancel()
	_ = conn.Close(ctx)
}

func quoted(identifier string) string { return `"` + strings.ReplaceAll(identifier, `"`, `""`) + `"` }

// disconnect closes the connections. A connection that hangs ends later by itself.
func (s *server) disconnect() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(leaving):
	}
}

// statement is a statement with its parameters. In its text @ is replaced by the schema.
type statement struct {
	text   string
	values [][]byte
	binary []int16
}

// sql prepares a statement. Each parameter is a string, an int64, bytes, or nil.
func (s *server) sql(text string, values ...any) statement {
	st := statement{text: strings.ReplaceAll(text, "@", s.schema)}
	for _, value := range values {
		var encoded []byte
		binary := int16(0)
		switch v := value.(type) {
		case string:
			encoded = []byte(v)
		case int64:
			encoded = strconv.AppendInt(nil, v, 10)
		case []byte:
			encoded, binary = append([]byte{}, v...), 1
		}
		st.values, st.binary = append(st.values, encoded), append(st.binary, binary)
	}
	return st
}

// row is a row of an answer, as texts; nil for NULL.
type row [][]byte

func (r row) text(i int) string { return string(r[i]) }
func (r row) isNull(i int) bool { return r[i] == nil }
func (r row) is(i int) bool     { return string(r[i]) == "t" }

func (r row) number(i int) int64 {
	n, _ := strconv.ParseInt(string(r[i]), 10, 64) // the query returns a number
	return n
}

func (r row) micros(i int) time.Duration { return time.Duration(r.number(i)) * time.Microsecond }

// answer is the result of a statement.
type answer []row

const longestTry = 5 * time.Second

// carryOut executes statements as one transaction, until it is answered. make is called for each
// try.
func (s *server) carryOut(ctx context.Context, limit time.Duration, make func() []statement) (answers []answer, doubt bool, err error) {
	doubt, err = remote.Repeat(ctx, min(cmp.Or(limit, s.timeout), s.timeout), longestTry, func(ctx context.Context) (_ remote.Tried, err error) {
		var sent bool
		answers, sent, err = s.once(ctx, make)
		return remote.Tried{Doubt: sent && inDoubt(err), Again: passes(err), Told: codeOf(err) != "", Nobody: s.unreachable(err)}, err
	})
	return answers, doubt, err
}

// once sends statements, and reports whether they may have been sent.
func (s *server) once(ctx context.Context, make func() []statement) (answers []answer, sent bool, err error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if conn.Value().IsClosed() || isElsewhere(err) || conn.Value().TxStatus() != 'I' {
			conn.Destroy()
		} else {
			conn.Release()
		}
	}()
	answers, err = send(ctx, conn.Value(), make())
	return answers, true, err
}

var errBroken = errors.New("the connection broke before the answer came")

// idle is how long a connection may be unused before it is checked.
const idle = time.Second

func (s *server) connection(ctx context.Context) (*puddle.Resource[*pgconn.PgConn], error) {
	for {
		conn, err := s.pool.Acquire(ctx)
		if errors.Is(err, puddle.ErrClosedPool) {
			err = errClosed
		}
		if err != nil {
			return nil, err
		}
		s.answered.Store(true)
		if !conn.Value().IsClosed() && conn.IdleDuration() < idle || conn.Value().CheckConn() == nil { //nolint:staticcheck // a ping would cost a round trip
			return conn, nil
		}
		conn.Destroy()
	}
}

// send sends statements at once, without prepared statements.
func send(ctx context.Context, conn *pgconn.PgConn, statements []statement) (answers []answer, err error) {
	var batch pgconn.Batch
	for _, st := range statements {
		batch.ExecParams(st.text, st.values, nil, st.binary, nil)
	}
	results, err := conn.ExecBatch(ctx, &batch).ReadAll()
	if errors.Is(err, pgconn.ErrConnClosed) { // also if the connection broke only now
		err = errBroken
	}
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		var a answer
		for _, values := range result.Rows {
			a = append(a, values)
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// request is carryOut after checking the server, and creating its schema; with look the error is
// errUnmade without a schema.
func (s *server) request(ctx context.Context, look bool, limit time.Duration, make func() []statement) (answers []answer, doubt bool, err error) {
	if _, err := s.ready(ctx, look); err != nil {
		return nil, false, err
	}
	return s.carryOut(ctx, limit, make)
}

// clock is a reading of the server's clock, extrapolated by this host's.
type clock struct{ read atomic.Pointer[reading] }

type reading struct {
	micros int64
	at     boottime.Instant
}

// micros is the server's time as a number, for comparisons.
const micros = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// set stores a reading from an answer.
func (c *clock) set(micros int64) { c.read.Store(&reading{micros, boottime.Now()}) }

// after returns what the server's clock will show after d, as such a number. It requires a reading.
func (c *clock) after(d time.Duration) int64 {
	last := c.read.Load()
	return last.micros + (last.at.Elapsed() + d).Microseconds()
}
