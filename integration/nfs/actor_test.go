package nfs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// remote is a process on a host. It is run by the lab's program "on", which stays on
// the server, and takes it along when it is killed.
type remote struct {
	*actor.Actor
	host host
}

// prepare makes this binary play a role on a host.
func prepare(t testing.TB, h host, role string, part any) remote {
	t.Helper()
	return remote{actor.Prepare(t, role, part, "on", h.name), h}
}

// pid is the process's number on the server, as the only child of a thread of "on": 0
// before it starts, or after its end.
func (r remote) pid() int {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.Process.Pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return pid
		}
	}
	return 0
}

// order is what a test tells a process that does with locks what it is told.
type order struct {
	Do   string
	Name string
	Path string
	TTL  time.Duration
}

// answer is its reply.
type answer struct {
	Error string
	Token string
	State string
	Host  string // the holder's
}

// newActor starts such a process, for what needs one of the host's own, which can be
// killed, paused or judged.
func newActor(t testing.TB, h host, p place) remote {
	t.Helper()
	a := prepare(t, h, "actor", p.on(h))
	a.Start(t)
	return a
}

func (r remote) do(t testing.TB, o order) (got answer) {
	t.Helper()
	r.Tell(t, o)
	r.Hear(t, &got)
	return got
}

// must gives an order that has to succeed.
func (r remote) must(t testing.TB, o order) answer {
	t.Helper()
	r.Tell(t, o)
	return r.done(t)
}

// done waits until an order has succeeded.
func (r remote) done(t testing.TB) (got answer) {
	t.Helper()
	r.Hear(t, &got)
	require.Empty(t, got.Error)
	return got
}

// client is what such a process keeps between two orders.
type client struct {
	src  *fslock.Source
	lock *multilock.Lock
	file *os.File
}

// playActor obeys until its input ends. It then just ends, lock or no lock.
func playActor() error {
	var base string
	if err := actor.Part(&base); err != nil {
		return err
	}
	src, err := fslock.Open(fslock.Options{Base: base})
	if err != nil {
		return err
	}
	c := client{src: src}
	return actor.Obey(os.Stdin, os.Stdout, func(o order) answer {
		got, err := c.obey(context.Background(), o)
		if err != nil {
			got.Error = err.Error()
		}
		return got
	})
}

func (c *client) obey(ctx context.Context, o order) (got answer, err error) {
	switch o.Do {
	case "acquire":
		return c.take(ctx, o, multilock.Acquire)
	case "try":
		return c.take(ctx, o, multilock.TryAcquire)
	case "look":
		seen, err := multilock.Inspect(ctx, c.src, o.Name, multilock.StalePolicy{})
		return sighted(seen), err
	case "verify":
		err = c.lock.Verify(ctx)
	case "release":
		err = c.lock.Release(ctx)
	case "await loss":
		<-c.lock.Context().Done()
		err = context.Cause(c.lock.Context())
	case "keep open":
		c.file, err = os.Open(o.Path)
	case "close":
		err = c.file.Close()
	default:
		err = errors.New("unknown order " + o.Do)
	}
	return got, err
}

type taker func(context.Context, multilock.Source, string, multilock.Terms) (*multilock.Lock, error)

func (c *client) take(ctx context.Context, o order, take taker) (answer, error) {
	lock, err := take(ctx, c.src, o.Name, multilock.Options{TTL: o.TTL, Poll: 200 * time.Millisecond})
	var held *multilock.HeldError
	if errors.As(err, &held) {
		return sighted(held.Observation), err
	}
	if err != nil {
		return answer{}, err
	}
	c.lock = lock
	return answer{Token: lock.Record().Token}, nil
}

func sighted(seen multilock.Observation) answer {
	return answer{Token: seen.Record.Token, State: seen.State.String(), Host: seen.Record.Holder.Host}
}
