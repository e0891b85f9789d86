package cloudshell_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Several hosts work through one list, on a server that loses some answers: each
// job runs once, the one that fails as often as it may, and all know how it went.
func TestBatch(t *testing.T) {
	t.Parallel()
	const hosts, count = 3, 10
	l := newLab(t, serverOptions())
	l.opt.Group = "nightly"
	l.server.Inject(fakecloudshell.Random(7, fakecloudshell.Odds{Lost: 0.01, Failed: 0.01}))
	var mu sync.Mutex
	runs := map[string]int{}
	var jobs []batch.Job
	for i := range count {
		name := fmt.Sprint("job", i)
		jobs = append(jobs, batch.Job{Name: name, Command: "work " + name, Work: func(context.Context, batch.Attempt) error {
			mu.Lock()
			defer mu.Unlock()
			runs[name]++
			if name == "job3" {
				return errors.New("it does not work")
			}
			return nil
		}})
	}
	var all sync.WaitGroup
	reports := make([]batch.Report, hosts)
	for i := range hosts {
		opt := batch.Options{Workers: 2, Retries: 1}
		opt.TTL, opt.Poll = time.Minute, 200*time.Millisecond
		b, err := batch.New(l.open(t), jobs, opt)
		require.NoError(t, err)
		all.Go(func() {
			report, err := b.Run(t.Context())
			if !errors.Is(err, lockgroup.ErrNotDone) {
				t.Errorf("host %d: %v", i, err)
			}
			reports[i] = report
		})
	}
	all.Wait()
	for i := range count {
		name, want := fmt.Sprint("job", i), 1
		if name == "job3" {
			want = 2
		}
		require.Equal(t, want, runs[name], name)
	}
	l.server.Inject(nil)
	src := l.open(t)
	names, err := src.Results(t.Context())
	require.NoError(t, err)
	require.Len(t, names, count)
	events, err := source.Collect(src.History(t.Context(), time.Time{}))
	require.NoError(t, err)
	require.Len(t, events, count)

	other, err := batch.New(src, jobs[1:], batch.Options{})
	require.NoError(t, err)
	_, err = other.Run(t.Context())
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.ErrorContains(t, err, "another list")
}
