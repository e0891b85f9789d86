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

// Counter is a file with a number that two processes must not increment at the same time.
type Counter string

// NewCounter makes a counter in a directory, writable for every user.
func NewCounter(t testing.TB, dir string) Counter {
	t.Helper()
	c := Counter(filepath.Join(dir, "counter"))
	require.NoError(t, os.WriteFile(string(c), []byte("0"), 0o666)) //nolint:gosec // see above
	return c
}

// Add increments the counter repeatedly, each time under the lock, and in two steps that would lose a
// count if another process did the same.
func (c Counter) Add(ctx context.Context, src source.Source, name string, rounds int) error {
	for range rounds {
		lock, err := multilock.Acquire(ctx, src, name, multilock.Options{TTL: time.Hour})
		if err != nil {
			return err
		}
		number, err := c.Number()
		if err == nil {
			err = os.WriteFile(string(c), []byte(strconv.Itoa(number+1)), 0o666) //nolint:gosec // the file exists
		}
		if err := errors.Join(err, lock.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// Number returns the count.
func (c Counter) Number() (int, error) {
	text, err := os.ReadFile(string(c))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Require requires that no count was lost.
func (c Counter) Require(t testing.TB, want int) {
	t.Helper()
	number, err := c.Number()
	require.NoError(t, err)
	require.Equal(t, want, number)
}
