package fslock_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// useAll makes each use of a source that there is.
func useAll(t *testing.T, src *fslock.Source, now time.Time) {
	t.Helper()
	ctx := t.Context()
	claim := longClaim()
	claim.Job = true
	c := contend(t, src, sweptName, claim)
	_ = c.Wake() // there is none where others may not be told
	lease := try(t, c)
	closed(t, c)
	require.NoError(t, lease.Renew(ctx))
	fence(t, lease)
	require.NoError(t, lease.MarkJob(ctx, someJob(self(t))))
	outcome(t, lease, source.ErrNoResult)
	commit(t, lease, 1)
	outcome(t, lease, nil)
	require.NoError(t, committer(lease).Forget(ctx))
	commit(t, lease, 2)
	names, err := src.Results(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{sweptName}, names)
	_, err = src.Result(ctx, sweptName)
	require.NoError(t, err)
	_, err = src.Revision(ctx)
	require.NoError(t, err)

	refuse(t, contend(t, src, sweptName, longClaim()))
	o := observe(t, src, sweptName, source.Patience{})
	seen := look(t, o)
	require.Equal(t, source.StateHeld, seen.State)
	require.GreaterOrEqual(t, seen.Age, time.Duration(0))
	require.Less(t, seen.Age, watchdog)
	vacant, err := src.Vacant(ctx)
	require.NoError(t, err)
	require.False(t, vacant)
	_, stop := src.Wake()
	stop()
	require.NoError(t, committer(lease).Forget(ctx))
	release(t, lease)
	require.NoError(t, src.Tidy(ctx, sweptName))

	f := src.Follow(now.Add(-time.Hour))
	require.NoError(t, src.Record(ctx, nil))
	require.NoError(t, src.Append(ctx, eventAt(now, "one")))
	require.Equal(t, []string{"one"}, follow(t, f))
	require.NoError(t, os.RemoveAll(historyDir(src.Base())))
	require.Empty(t, follow(t, f))
	require.NoError(t, src.Append(ctx, eventAt(now, "two")))
	require.Equal(t, []string{"two"}, follow(t, f))
	require.NoError(t, os.RemoveAll(historyDir(src.Base())))
	closed(t, f)
	_, err = src.Publish(ctx, []byte("list\n"))
	require.NoError(t, err)
	require.NoError(t, src.Retract(ctx))
	_, err = src.Leftovers(ctx)
	require.NoError(t, err)
	_, err = src.Sweep(ctx)
	require.NoError(t, err)
}

// A process may hold thousands of locks one after the other: nothing stays open behind them.
func TestNothingStaysOpen(t *testing.T) {
	for name, legacy := range map[string]bool{"plain": false, "legacy peers": true} {
		t.Run(name, func(t *testing.T) {
			base := fresh(t)
			src, err := fslock.Open(fslock.Options{Base: base, FS: sharedFS(), LegacyPeers: legacy})
			require.NoError(t, err)
			t.Run("used", func(t *testing.T) { useAll(t, src, time.Now()) })
			require.NoError(t, src.Close())
			requireClosed(t, base)
		})
	}
}

// What a source has open of .multilock may be removed, as a whole or in part, and made
// again by others. One call may still find it gone; everything after that goes on with
// what is there then.
func TestPrivateDirectoryIsRemovedUnderTheSource(t *testing.T) {
	for _, part := range []string{"", "staging", "groups"} {
		t.Run("all of "+part, func(t *testing.T) {
			base := fresh(t)
			src := open(t, fslock.Options{Base: base, FS: sharedFS()})
			t.Run("before", func(t *testing.T) { useAll(t, src, time.Now()) })
			require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", part)))
			if c, err := src.Contend(t.Context(), sweptName, longClaim(), source.Patience{}); err == nil {
				closed(t, c)
			}
			t.Run("after", func(t *testing.T) { useAll(t, src, time.Now()) })
		})
	}
}

// Only files of the history are read, and of those only what is asked for.
func TestHistoryIsWhatIsAskedFor(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, at := range map[string]time.Duration{"the day before": -20 * time.Hour, "morning": -2 * time.Hour, "noon": 0, "evening": 7 * time.Hour} {
		require.NoError(t, src.Append(t.Context(), eventAt(noon.Add(at), name)))
	}
	foreign, err := json.Marshal(eventAt(noon, "foreign"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(historyDir(base), "2026-01-02.notes.txt"), append(foreign, '\n'), 0o666))
	events, err := src.History(t.Context(), noon)
	require.NoError(t, err)
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"noon", "evening"}, names)
}

// What somebody who lives has staged is his, however long he has been waiting.
func TestLeftoverOfSomebodyWhoLives(t *testing.T) {
	base, _, src := contested(t, scene{})
	contendAndTry(t, src, sweptName, longClaim())
	refuse(t, contend(t, src, sweptName, longClaim()))
	ageStaged(t, base)
	left, err := src.Leftovers(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.False(t, left[0].Dead, left[0].Why)
	require.Contains(t, left[0].Why, "at work")
	swept, err := src.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, swept)
}
