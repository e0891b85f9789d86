package command

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ledger has results of many jobs, of which one has failed, or all.
type ledger struct {
	source.Ledger
	names  []string
	failed string
}

func (l ledger) Results(context.Context) ([]string, error) { return l.names, nil }

func (l ledger) Result(_ context.Context, name string) (multilock.Result, error) {
	r := multilock.Result{Name: name, Token: "t", Attempt: 1, Final: true, Start: time.Now()}
	if l.failed == name || l.failed == "all" {
		r.Exit = 1
	}
	return r, nil
}

// Of very many jobs those that are done are counted, unless there is more to be told of them.
func TestVeryManyResults(t *testing.T) {
	l := ledger{failed: "job7"}
	for n := range maxListed + 1 {
		l.names = append(l.names, fmt.Sprint("job", n))
	}
	in := report.Input{
		Made: time.Now(), Held: []lockgroup.Holding{{Name: "job8", Sighting: multilock.Sighting{State: multilock.StateHeld}}},
		Events: []source.Event{{What: source.EventRefused, Name: "job9"}},
	}
	require.NoError(t, readRecorded(t.Context(), l, time.Time{}, &in))
	require.Len(t, in.Results, 3)
	timeline := report.Build(in)
	require.Len(t, timeline.Jobs, 3)
	s := timeline.Summary
	require.Equal(t, [4]int{maxListed + 1, maxListed - 1, 1, 1}, [4]int{s.Jobs, s.Done, s.Failed, s.Running})
}

// Of very many jobs that have failed a part is listed, and the page says how many are not.
func TestVeryManyFailures(t *testing.T) {
	l := ledger{failed: "all"}
	for n := range maxTroubled + 5 {
		l.names = append(l.names, fmt.Sprint("job", n))
	}
	in := report.Input{Made: time.Now(), Events: []source.Event{{What: source.EventRefused, Name: "job9"}}}
	require.NoError(t, readRecorded(t.Context(), l, time.Time{}, &in))
	require.Len(t, in.Results, maxTroubled+1)
	require.Len(t, in.Missing, 1)
	require.Contains(t, in.Missing[0], "4 jobs that have failed, or whose results cannot be read, are left out")
}
