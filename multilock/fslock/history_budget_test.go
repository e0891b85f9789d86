package fslock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/budget"
	"github.com/multilock/go/multilock/source"
)

// A day with more than its share is truncated, and reported with how much was left out; the other days are
// read.
// Rule: history
func TestDayBeyondItsShareIsCut(t *testing.T) {
	src, err := Open(Options{Base: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	src.ReadMost = 1 << 20
	first := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	flood := make([]source.Event, 1000)
	for n := range flood {
		flood[n] = source.Event{What: source.EventAcquired, Name: "flood", Time: first.AddDate(0, 0, 1), Command: strings.Repeat("x", 4<<10)}
	}
	for day := range 3 {
		require.NoError(t, src.Append(t.Context(), source.Event{What: source.EventAcquired, Name: fmt.Sprint(day), Time: first.AddDate(0, 0, day)}))
	}
	require.NoError(t, src.Record(t.Context(), flood))

	ctx := budget.Once(t.Context())
	seen, left := heard(ctx, t, src)
	for day := range 3 {
		require.Equal(t, 1, seen[fmt.Sprint(day)], "day %d", day)
	}
	require.NotZero(t, seen["flood"])
	require.Less(t, seen["flood"], 200)
	require.Len(t, left, 1)
	require.Regexp(t, `/2026-01-02 is left out: files that are not read completely: 1, with 3\.\d MiB or more, because only 0\.5 MiB are read`, left[0])

	again, left := heard(ctx, t, src)
	require.Less(t, seen["flood"]+again["flood"], 280, "it is one budget, however often the history is read")
	require.NotEmpty(t, left)
	alone, _ := heard(t.Context(), t, src)
	require.Equal(t, seen, alone)
}

func heard(ctx context.Context, t *testing.T, src *Source) (seen map[string]int, left []string) {
	t.Helper()
	seen = map[string]int{}
	for e, err := range src.History(ctx, time.Time{}) {
		if out := (*source.LeftOutError)(nil); errors.As(err, &out) {
			left = append(left, out.Error())
			continue
		}
		require.NoError(t, err)
		seen[e.Name]++
	}
	return seen, left
}
