package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

func committer(lease source.Lease) source.Committer { return lease.(source.Committer) }

// ended is a result as a holder would commit it.
func ended(record source.Record, attempt, exit int) source.Result {
	return source.Result{
		Name: record.Name, Token: record.Token, By: record.Holder.Identity, Attempt: attempt, Exit: exit,
		Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: time.Second,
	}
}

func commit(t *testing.T, lease source.Lease, attempt int) {
	t.Helper()
	require.NoError(t, committer(lease).Commit(t.Context(), ended(lease.Record(), attempt, 0)))
}

func outcome(t *testing.T, lease source.Lease, want error) source.Result {
	t.Helper()
	result, err := committer(lease).Outcome(t.Context())
	require.ErrorIs(t, err, want)
	return result
}
