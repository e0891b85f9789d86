package fslock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

func requireVacant(t testing.TB, src *fslock.Source, want bool) {
	t.Helper()
	vacant, err := src.Vacant(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, vacant)
}

func recordVacant(t *testing.T, r *recorder) {
	r.warm(t)
	r.record(func() { requireVacant(t, r.src, true) })
}

// An answer that there is no group may come from a cache.
func recordVacantAgain(t *testing.T, r *recorder) {
	r.warm(t)
	requireVacant(t, r.src, true)
	r.record(func() { requireVacant(t, r.src, true) })
}

// A barrier's poll is one request, whatever the size of the group.
func recordVacantHeld(t *testing.T, r *recorder) {
	r.warm(t)
	for _, name := range []string{"a", "b", "c"} {
		contendAndTry(t, r.rival, name, longClaim())
	}
	r.record(func() { requireVacant(t, r.src, false) })
	require.Equal(t, 1, strings.Count(r.trace.String(), "\n"))
}

func recordTidy(t *testing.T, r *recorder) {
	r.warm(t)
	emptyDirectory(t, r.base, "lock")
	r.record(func() { require.NoError(t, r.src.Tidy(t.Context(), "lock")) })
}

// So is a poll for results.
func recordRevision(t *testing.T, r *recorder) {
	r.warm(t)
	holder := contendAndTry(t, r.rival, "lock", longClaim()).(source.Committer)
	require.NoError(t, holder.Commit(t.Context(), source.Result{Attempt: 1}))
	first, err := r.src.Revision(t.Context())
	require.NoError(t, err)
	r.record(func() {
		second, err := r.src.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
	require.Equal(t, 1, strings.Count(r.trace.String(), "\n"))
}
