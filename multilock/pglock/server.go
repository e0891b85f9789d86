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

// server is the database behind a source.
type server struct {
	config   *pgconn.Config
	schema   string // quoted, with a dot
	named    string // as it was given
	public   string
	timeout  time.Duration
	pool     *puddle.Pool[*pgconn.PgConn]
	answered atomic.Bool // it was there once
	crowd    *crowd

	facts *remote.Facts[facts]
	clock clock
}

const (
	connecting = 4 * time.Second
	// mostConnections are those of a source, and one more to listen.
	mostConnections = 8
	// leaving is how long the end of a source or a contender may take.
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
	s.crowd = newCrowd(s)
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

// disconnect ends the connections. One that hangs is left to end by itself.
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

// statement is one with its parameters. In its text @ stands for the schema.
type statement struct {
	text   string
	values [][]byte
	binary []int16
}

// sql prepares a statement. Each parameter is a text, a number, bytes, or nil.
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

// row is one of an answer, as texts; nil for no value.
type row [][]byte

func (r row) text(i int) string { return string(r[i]) }
func (r row) isNull(i int) bool { return r[i] == nil }
func (r row) is(i int) bool     { return string(r[i]) == "t" }

func (r row) number(i int) int64 {
	n, _ := strconv.ParseInt(string(r[i]), 10, 64) // the query has made it one
	return n
}

func (r row) micros(i int) time.Duration { return time.Duration(r.number(i)) * time.Microsecond }

// answer is what a statement has returned.
type answer []row

const longestTry = 5 * time.Second

// carryOut has statements carried out as one transaction, until that is answered. They are made
// anew for each try.
func (s *server) carryOut(ctx context.Context, limit time.Duration, make func() []statement) (answers []answer, doubt bool, err error) {
	doubt, err = remote.Repeat(ctx, min(cmp.Or(limit, s.timeout), s.timeout), longestTry, func(ctx context.Context) (_ remote.Tried, err error) {
		var sent bool
		answers, sent, err = s.once(ctx, make)
		return remote.Tried{Doubt: sent && inDoubt(err), Again: passes(err), Told: codeOf(err) != "", Nobody: s.unreachable(err)}, err
	})
	return answers, doubt, err
}

// once sends statements, and reports whether they may have left this host.
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

// idle is how long a connection may have lain before one looks whether it still is one.
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
		if !conn.Value().IsClosed() && conn.IdleDuration() < idle || conn.Value().CheckConn() == nil { //nolint:staticcheck // a ping costs an answer's time
			return conn, nil
		}
		conn.Destroy()
	}
}

// send sends statements at once, without anything that the server would keep.
func send(ctx context.Context, conn *pgconn.PgConn, statements []statement) (answers []answer, err error) {
	var batch pgconn.Batch
	for _, st := range statements {
		batch.ExecParams(st.text, st.values, nil, st.binary, nil)
	}
	results, err := conn.ExecBatch(ctx, &batch).ReadAll()
	if errors.Is(err, pgconn.ErrConnClosed) { // as which the driver tells of the end of a connection that stood until now
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

// request is carryOut on a server that is known, with its schema: look says that without one the error is
// errUnmade.
func (s *server) request(ctx context.Context, look bool, limit time.Duration, make func() []statement) (answers []answer, doubt bool, err error) {
	if _, err := s.ready(ctx, look); err != nil {
		return nil, false, err
	}
	return s.carryOut(ctx, limit, make)
}

// clock is a reading of the server's clock, carried on by this host's.
type clock struct{ read atomic.Pointer[reading] }

type reading struct {
	micros int64
	at     boottime.Instant
}

// micros is the server's time as a number. It may be compared.
const micros = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// set is for a reading that an answer has brought.
func (c *clock) set(micros int64) { c.read.Store(&reading{micros, boottime.Now()}) }

// after is what the server's clock shows after a while, as such a number. It was read before.
func (c *clock) after(d time.Duration) int64 {
	last := c.read.Load()
	return last.micros + (last.at.Elapsed() + d).Microseconds()
}
