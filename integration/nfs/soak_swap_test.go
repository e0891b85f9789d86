package nfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// cookRegister is the register that all swap.
func cookRegister(src source.Ledger, ttl time.Duration) cooklock.Register {
	return cooklock.LedgerRegister{Ledger: src, Name: "nightly", TTL: ttl}
}

// swapper looks at a register and swaps, and tells of all that it does. Its values begin
// with its name, and it writes each event with one call: nothing is lost when its process
// is killed later, and at most the end of a line when it is killed then.
type swapper struct {
	register cooklock.Register
	tell     *json.Encoder
	name     string
}

// swapUntil swaps now and then, and never gives up in the middle. Whatever goes wrong
// with a swap, its event says so.
func (s shift) swapUntil(over context.Context, src source.Ledger, rng *rand.Rand) error {
	log, err := os.Create(filepath.Join(s.Swaps, s.Name))
	if err != nil {
		return err
	}
	defer log.Close()
	own := swapper{cookRegister(src, s.TTL), json.NewEncoder(log), s.Name}
	for n := 0; worker.Pause(over, worker.UpTo(rng, s.TTL)); n++ {
		if err := own.round(context.WithoutCancel(over), n); err != nil {
			return err
		}
	}
	return nil
}

func (s swapper) round(ctx context.Context, n int) error {
	if found, number, err := s.register.Peek(ctx); err == nil {
		if err := s.tell.Encode(locktest.SwapEvent{Op: "peek", Value: string(found), Number: number, Time: locktest.Now()}); err != nil {
			return err
		}
	}
	value := fmt.Sprint(s.name, "-", n)
	if err := s.tell.Encode(locktest.SwapEvent{Op: "begin", Value: value, Time: locktest.Now()}); err != nil {
		return err
	}
	old, number, err := locktest.UntilSwapped(time.Second, func() ([]byte, uint64, error) { return s.register.Swap(ctx, []byte(value)) })
	return s.tell.Encode(locktest.SwapAnswer(value, old, number, err))
}

// requireOneRegister swaps once more. What all have told is the history of one register
// then, and all hosts show what was swapped in last.
func (s *soak) requireOneRegister() {
	s.Helper()
	var told bytes.Buffer
	last := swapper{cookRegister(s.source(s, hosts()[0]), s.shift.TTL), json.NewEncoder(&told), "last"}
	require.NoError(s, last.round(within(s), 0))
	events, err := locktest.ReadSwaps(&told)
	require.NoError(s, err)
	newest := events[len(events)-1]
	require.Equal(s, "end", newest.Op, newest.Error)
	files, err := filepath.Glob(filepath.Join(s.shift.Swaps, "*"))
	require.NoError(s, err)
	for _, path := range files {
		events = append(events, readSwaps(s, path)...)
	}
	confirmed, err := locktest.CheckSwaps(events)
	require.NoError(s, err)
	s.Logf("%d swaps confirmed, by %d processes", confirmed, len(files))
	require.Greater(s, confirmed, 1)
	for _, h := range hosts() {
		value, number, err := cookRegister(s.source(s, h), s.shift.TTL).Peek(within(s))
		require.NoError(s, err)
		require.Equal(s, newest.Value, string(value), h.name)
		require.Equal(s, newest.Number, number, h.name)
	}
	require.Equal(s, []string{"nightly"}, s.entries(s, ".multilock", "groups", ".locks", "done"))
}

func readSwaps(t testing.TB, path string) []locktest.SwapEvent {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	events, err := locktest.ReadSwaps(file)
	require.NoError(t, err)
	return events
}
