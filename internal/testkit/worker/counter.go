package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Counter is a file with a number, to which no two may add at once.
type Counter string

// NewCounter makes one in a directory, that every user may change.
func NewCounter(t testing.TB, dir string) Counter {
	t.Helper()
	c := Counter(filepath.Join(dir, "counter"))
	require.NoError(t, os.WriteFile(string(c), []byte("0"), 0o666)) //nolint:gosec // as said above
	return c
}

// Add adds one as often as it is told, each time under the lock, and in two steps that
// would lose a count if somebody else were there.
func (c Counter) Add(ctx context.Context, src source.Source, name string, rounds int) error {
	for range rounds {
		lock, err := multilock.Acquire(ctx, src, name, multilock.Options{TTL: time.Hour})
		if err != nil {
			return err
		}
		number, err := c.Number()
		if err == nil {
			err = os.WriteFile(string(c), []byte(strconv.Itoa(number+1)), 0o666) //nolint:gosec // it is there
		}
		if err := errors.Join(err, lock.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// Number is what was counted.
func (c Counter) Number() (int, error) {
	text, err := os.ReadFile(string(c))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Require checks that no count was lost.
func (c Counter) Require(t testing.TB, want int) {
	t.Helper()
	number, err := c.Number()
	require.NoError(t, err)
	require.Equal(t, want, number)
}
