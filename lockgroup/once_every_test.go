package lockgroup_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock/fslock"
)

// clocked is a source whose clock the test sets.
type clocked struct {
	*fslock.Source
	now time.Time
}

func (c *clocked) Now(context.Context) (time.Time, error) { return c.now, nil }

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return moment
}

// runsAt runs a job whose line fires at these moments by the source's clock, and
// returns those at which it ran.
func runsAt(t *testing.T, every string, moments ...string) []string {
	t.Helper()
	src := &clocked{Source: grouptest.Opener(t)()}
	var ran []string
	for _, moment := range moments {
		src.now = at(t, moment)
		var runs atomic.Int64
		_, err := lockgroup.Once(t.Context(), src, "x", lockgroup.OnceOptions{Every: mustEvery(t, every)}, work(&runs, nil))
		require.NoError(t, err)
		if runs.Load() > 0 {
			ran = append(ran, moment)
		}
	}
	return ran
}

// Lines that fire in the middle of the multiples of their span since 1970 UTC run
// once each time: there is no edge without a phase.
func TestEveryHasNoEdgeWithoutAPhase(t *testing.T) {
	for name, c := range map[string]struct {
		every string
		fires []string
	}{
		"30 * * * *":  {"1h", []string{"2026-01-02T12:29:59.8Z", "2026-01-02T13:30:00.3Z", "2026-01-02T14:29:59.7Z", "2026-01-02T15:30:00.2Z"}},
		"noon in UTC": {"24h", []string{"2026-01-02T12:00:00.3Z", "2026-01-03T11:59:59.8Z", "2026-01-04T12:00:00.1Z", "2026-01-05T11:59:59.9Z"}},
		"13:30 in Berlin, to summer": {"24h", []string{
			"2026-03-27T13:30:00+01:00", "2026-03-28T13:30:00+01:00", "2026-03-29T13:30:00+02:00", "2026-03-30T13:30:00+02:00",
		}},
		"13:30 in Berlin, to winter": {"24h", []string{
			"2026-10-23T13:30:00+02:00", "2026-10-24T13:30:00+02:00", "2026-10-25T13:30:00+01:00", "2026-10-26T13:30:00+01:00",
		}},
		"every minute at its half": {"1m", []string{"2026-01-02T12:00:30.1Z", "2026-01-02T12:01:29.9Z", "2026-01-02T12:02:30.1Z", "2026-01-02T12:03:29.8Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.fires, runsAt(t, c.every, c.fires...))
		})
	}
}

// Two hosts start around the middle of two ticks, a fraction of a second apart: one of
// them runs the job, and the next minute's runs are those of the next minute.
func TestTwoStartsAroundTheMiddle(t *testing.T) {
	for name, apart := range map[string]string{"0.25 s": "30.05", "0.8 s": "30.6"} {
		t.Run(name, func(t *testing.T) {
			fires := []string{"2026-01-02T12:00:29.8Z", "2026-01-02T12:00:" + apart + "Z", "2026-01-02T12:01:29.8Z", "2026-01-02T12:01:" + apart + "Z"}
			require.Equal(t, []string{fires[0], fires[2]}, runsAt(t, "1m", fires...))
		})
	}
}

// A server's clock that was wrong once blocks no job.
func TestResultFromTheFuture(t *testing.T) {
	fires := []string{"2031-05-06T12:00:00Z", "2026-01-02T12:00:00Z", "2026-01-02T12:00:01Z", "2026-01-02T13:00:00Z"}
	require.Equal(t, []string{fires[0], fires[1], fires[3]}, runsAt(t, "1h", fires...))
}

func mustEvery(t *testing.T, text string) lockgroup.Every {
	t.Helper()
	every, err := lockgroup.ParseEvery(text)
	require.NoError(t, err)
	return every
}
