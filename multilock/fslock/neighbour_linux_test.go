package fslock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{
		"neighbour": obeyOrders, "container": playContainer, "worker": playWorker, "sweep": playSweep,
	})
	os.Exit(m.Run())
}

// setting is the user and the namespaces of a neighbour.
type setting struct {
	UID int // 0 for the user of the test
	// Container gives it its own pid namespace, with a matching /proc.
	Container bool
	// PID is its number in its container, 0 for any.
	PID int
}

// neighbour is the test's side of such a process.
type neighbour struct{ *actor.Actor }

// newNeighbour starts a process that has opened the locks below base.
func newNeighbour(t *testing.T, s setting, open order) neighbour {
	t.Helper()
	role := "neighbour"
	if s.Container {
		role = "container"
	}
	p := neighbour{actor.Prepare(t, role, s)}
	if s.Container {
		p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	}
	if s.UID != 0 {
		p.RunAs(uint32(s.UID))
	}
	p.Start(t)
	open.Do = "open"
	p.must(t, open)
	return p
}

func (p neighbour) hear(t *testing.T) (a answer) {
	t.Helper()
	p.Hear(t, &a)
	return a
}

func (p neighbour) do(t *testing.T, o order) answer {
	t.Helper()
	p.Tell(t, o)
	return p.hear(t)
}

func (p neighbour) must(t *testing.T, o order) answer {
	t.Helper()
	a := p.do(t, o)
	require.Empty(t, a.Error)
	return a
}

func requireRoot(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for " + why)
	}
}

// order is a request to a neighbour, a process that executes one request after the other.
type order struct {
	Do string

	// for "open"
	Base, Group string
	Legacy      bool
	Self        process.Identity
	Umask       int
	Trust       shareddir.Trust

	// for "acquire", "try" and "look"
	Name        string
	TTL, MaxAge time.Duration
	Job, Fair   bool

	// for "count"
	Counter worker.Counter
	Rounds  int
}

// answer is the neighbour's reply to an order.
type answer struct {
	Error     string
	Is        []string // what the error is: the names of sentinels and of error numbers
	State     string
	Why       string
	Holder    string
	Fence     uint64
	Remaining time.Duration
	PGID      int
	Environ   []string // the environment of the processes of the job
}

// doer is a neighbour's state between two orders.
type doer struct {
	src  *fslock.Source
	lock *multilock.Lock
}

// obeyOrders executes orders until its input ends. It then exits, even if it holds a lock.
func obeyOrders() error {
	var d doer
	return actor.Obey(os.Stdin, os.Stdout, func(o order) answer { return d.obey(context.Background(), o) })
}

func (d *doer) obey(ctx context.Context, o order) answer {
	switch o.Do {
	case "open":
		return failed(d.open(o))
	case "acquire":
		a := failed(d.take(ctx, o, multilock.Acquire))
		if a.Error == "" {
			a.Environ = d.lock.JobEnviron()
		}
		return a
	case "try":
		return failed(d.take(ctx, o, multilock.TryAcquire))
	case "look":
		return d.look(ctx, o)
	case "verify":
		return failed(d.lock.Verify(ctx))
	case "release":
		return failed(d.lock.Release(ctx))
	case "fence":
		number, err := d.lock.Fence(ctx)
		a := failed(err)
		a.Fence = number
		return a
	case "history":
		events, err := source.Collect(d.src.History(ctx, time.Time{}))
		a := answer{}
		for _, e := range events {
			a.Is = append(a.Is, e.Name)
		}
		if err != nil {
			a.Why = err.Error()
		}
		return a
	case "cause":
		<-d.lock.Context().Done()
		return failed(context.Cause(d.lock.Context()))
	case "remaining":
		return answer{Remaining: d.lock.Remaining()}
	case "job":
		return d.startJob(ctx)
	case "count":
		return failed(o.Counter.Add(ctx, d.src, o.Name, o.Rounds))
	}
	return answer{Error: "unknown order " + o.Do}
}

func (d *doer) open(o order) (err error) {
	unix.Umask(o.Umask)
	d.src, err = fslock.Open(fslock.Options{Base: o.Base, Group: o.Group, LegacyPeers: o.Legacy, Self: o.Self, Trust: o.Trust})
	return err
}

type taker func(context.Context, source.Source, string, multilock.Terms) (*multilock.Lock, error)

func (d *doer) take(ctx context.Context, o order, take taker) error {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	opt := multilock.Options{TTL: o.TTL, StalePolicy: source.StalePolicy{MaxAge: o.MaxAge}, Poll: 100 * time.Millisecond, Fair: o.Fair}
	var terms multilock.Terms = opt
	if o.Job {
		terms = multilock.ForJob{Options: opt}
	}
	lock, err := take(ctx, d.src, o.Name, terms)
	if err == nil {
		d.lock = lock
	}
	return err
}

func (d *doer) look(ctx context.Context, o order) answer {
	seen, err := multilock.Inspect(ctx, d.src, o.Name, source.StalePolicy{MaxAge: o.MaxAge})
	a := failed(err)
	a.State, a.Why, a.Holder = seen.State.String(), seen.Why, seen.Record.Holder.String()
	return a
}

// startJob starts a process group that outlives this process, and records it in the lock.
func (d *doer) startJob(ctx context.Context) answer {
	job := exec.Command("sleep", "600")
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := job.Start(); err != nil {
		return failed(err)
	}
	group, err := process.FindGroup(job.Process.Pid)
	if err == nil {
		err = d.lock.MarkJob(ctx, group)
	}
	a := failed(err)
	a.PGID = job.Process.Pid
	return a
}

// failed describes an error in a form that can be sent to another process.
func failed(err error) answer {
	if err == nil {
		return answer{}
	}
	a := answer{Error: err.Error()}
	for name, sentinel := range map[string]error{
		"held": source.ErrHeld, "free": source.ErrFree, "lost": source.ErrLost, "released": source.ErrReleased,
		"unsure": source.ErrUnsure, "invalid": source.ErrInvalid, "unsupported": source.ErrUnsupported,
	} {
		if errors.Is(err, sentinel) {
			a.Is = append(a.Is, name)
		}
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		a.Is = append(a.Is, unix.ErrnoName(number))
	}
	return a
}
