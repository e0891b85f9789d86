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

// remote is a process on a host. The lab's program "on" starts it and stays on the server itself.
// Killing "on" kills the process, too.
type remote struct {
	*actor.Actor
	host host
}

// prepare makes this binary play a role on a host.
func prepare(t testing.TB, h host, role string, part any) remote {
	t.Helper()
	return remote{actor.Prepare(t, role, part, "on", h.name), h}
}

// pid returns the process's ID on the server, where it is the only child of a thread of "on". It is
// 0 before the process starts and after it ends.
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

// order is a command that a test sends to an actor, a process that works with locks.
type order struct {
	Do   string
	Name string
	Path string
	TTL  time.Duration
}

// answer is an actor's reply to an order.
type answer struct {
	Error string
	Token string
	State string
	Host  string // the holder's
}

// newActor starts an actor on a host, for tests that need a process there to kill, pause or judge.
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

// must sends an order and requires it to succeed.
func (r remote) must(t testing.TB, o order) answer {
	t.Helper()
	r.Tell(t, o)
	return r.done(t)
}

// done waits for the reply to an order and requires success.
func (r remote) done(t testing.TB) (got answer) {
	t.Helper()
	r.Hear(t, &got)
	require.Empty(t, got.Error)
	return got
}

// client is an actor's state between two orders.
type client struct {
	src  *fslock.Source
	lock *multilock.Lock
	file *os.File
}

// playActor executes orders until its input ends. Then it exits, without releasing its lock.
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
