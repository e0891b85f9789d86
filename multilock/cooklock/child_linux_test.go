package cooklock_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// part is what a process of its own does with a register.
type part struct {
	Base  string
	Who   string
	Swaps int
	// How strikes it down: "crash" after the N-th operation that changes something,
	// "stop" before the N-th that depends on what others do, "crash when made" after
	// the rename that is the swap.
	How string
	N   int
	// Network makes it take the file system for one with other clients.
	Network bool
	// TTL is that of the lock under which a swap is made; soon if 0.
	TTL time.Duration
	// Period is that of the cooking lock, for the role "chef".
	Period time.Duration
}

// play is a role that plays its part.
func play(how func(part, io.Writer) error) func() error {
	return func() error {
		var p part
		if err := actor.Part(&p); err != nil {
			return err
		}
		return how(p, os.Stdout)
	}
}

// soon is a TTL that others wait for.
const soon = 200 * time.Millisecond

// open is the register on the file system that the part asks for, to be closed.
func (p part) open() (register cooklock.LedgerRegister, faulty *faultfs.FS, shut func(), err error) {
	faulty = faultfs.New(vfs.OS{}, nil)
	if p.Network {
		faulty.Describe(vfs.FileSystem{Type: "network"})
	}
	files, err := fslock.Open(fslock.Options{Base: p.Base, FS: faulty})
	if err != nil {
		return cooklock.LedgerRegister{}, nil, nil, err
	}
	return cooklock.LedgerRegister{Ledger: files, Name: "nightly", TTL: cmp.Or(p.TTL, soon)}, faulty, func() { _ = files.Close() }, nil
}

func (p part) swap(out io.Writer) error {
	register, faulty, shut, err := p.open()
	if err != nil {
		return err
	}
	defer shut()
	faulty.Inject(p.injector())
	s := swapper{register: register, out: json.NewEncoder(out)}
	for i := range p.Swaps {
		if err := s.round(fmt.Sprintf("%s-%d-%d", p.Who, os.Getpid(), i)); err != nil {
			return err
		}
	}
	return nil
}

func (p part) injector() faultfs.Injector {
	var strikes func(faultfs.Op) bool
	how := faultfs.CrashAt
	switch p.How {
	case "crash":
		strikes = func(op faultfs.Op) bool { return op.Phase == faultfs.After && slices.Contains(changing(), op.Kind) }
	case "crash when made":
		strikes = func(op faultfs.Op) bool { return op.Phase == faultfs.After && makesSwap(op) }
	case "stop":
		how = faultfs.StopAt
		strikes = func(op faultfs.Op) bool {
			return op.Phase == faultfs.Before && !slices.Contains([]string{"close", "file.close", "read", "filesystem"}, op.Kind)
		}
	default:
		return nil
	}
	var met atomic.Int64 // the lock of a swap is renewed while it is swapped, where that takes long
	return func(op faultfs.Op) error {
		if !strikes(op) || met.Add(1) != int64(p.N)+1 {
			return nil
		}
		return how(op.N, op.Phase)(op)
	}
}

// makesSwap tells the one operation that is the swap.
func makesSwap(op faultfs.Op) bool {
	return op.Kind == "rename" && filepath.Base(filepath.Dir(op.Target)) == "done"
}

// changing are the operations that change something on disk.
func changing() []string {
	return []string{"mkdir", "create", "write", "sync", "flush", "rename", "touch", "unlink", "rmdir", "syncdir"}
}

// swapper swaps, and tells before and after what it does.
type swapper struct {
	register cooklock.Register
	out      *json.Encoder
}

func (s swapper) round(value string) error {
	found, n, err := s.register.Peek(context.Background())
	if err == nil {
		err = s.out.Encode(locktest.SwapEvent{Op: "peek", Value: string(found), Number: n, Time: locktest.Now()})
	}
	if err != nil {
		return err
	}
	if err := s.out.Encode(locktest.SwapEvent{Op: "begin", Value: value, Time: locktest.Now()}); err != nil {
		return err
	}
	old, n, err := locktest.UntilSwapped(2*time.Millisecond, func() ([]byte, uint64, error) {
		return s.register.Swap(context.Background(), []byte(value))
	})
	return s.out.Encode(locktest.SwapAnswer(value, old, n, err))
}

// child is the test's end of such a process.
type child struct {
	*actor.Actor
	output *os.File // the process writes to it directly, so nothing is lost when it is killed
}

func start(t testing.TB, role string, p part) *child {
	t.Helper()
	output, err := os.CreateTemp(quick(t), "child")
	require.NoError(t, err)
	t.Cleanup(func() { _ = output.Close() })
	c := &child{actor.Prepare(t, role, p), output}
	c.Stdout = output
	c.Start(t)
	return c
}

func (c *child) events(t testing.TB) []locktest.SwapEvent {
	t.Helper()
	_, err := c.output.Seek(0, io.SeekStart)
	require.NoError(t, err)
	events, err := locktest.ReadSwaps(c.output)
	require.NoError(t, err)
	return events
}

// quick is a place whose fsync costs nothing, if there is one.
func quick(t testing.TB) string {
	t.Helper()
	base, err := os.MkdirTemp("/dev/shm", "cooklock")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	return base
}
