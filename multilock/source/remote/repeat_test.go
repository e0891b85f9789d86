package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source/remote"
)

// Tries are repeated until one is answered, each with a part of the time, and doubt about one try
// remains.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		doubt, err := remote.Repeat(t.Context(), time.Minute, 3*time.Second, func(ctx context.Context) (remote.Tried, error) {
			if tries++; tries == 3 {
				return remote.Tried{}, nil
			}
			<-ctx.Done()
			return remote.Tried{Doubt: tries == 1, Again: true, Nobody: true}, ctx.Err()
		})
		require.NoError(t, err)
		require.True(t, doubt)
		require.Equal(t, 3, tries)

		tries = 0
		start := time.Now()
		doubt, err = remote.Repeat(t.Context(), 10*time.Second, time.Second, func(context.Context) (remote.Tried, error) {
			tries++
			return remote.Tried{Again: true}, errNoAnswer
		})
		require.Equal(t, errNoAnswer, err)
		require.False(t, doubt)
		require.GreaterOrEqual(t, time.Since(start), 10*time.Second)
		require.Less(t, tries, 60, "there are pauses in between")

		tries = 0
		_, err = remote.Repeat(t.Context(), 10*time.Second, time.Second, func(ctx context.Context) (remote.Tried, error) {
			if tries++; tries == 1 {
				return remote.Tried{Again: true, Told: true}, errNoAnswer
			}
			<-ctx.Done()
			return remote.Tried{Again: true}, ctx.Err()
		})
		require.Equal(t, errNoAnswer, err, "why the time was over")
	})
}

// There is only one try if the error is permanent, no server was ever reached, or the caller's
// context has ended.
func TestRepeatNoMore(t *testing.T) {
	for name, tried := range map[string]remote.Tried{"refused": {}, "nobody": {Again: true, Nobody: true}, "over": {Again: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if name == "over" {
			cancel()
		}
		tries := 0
		_, err := remote.Repeat(ctx, time.Minute, time.Second, func(context.Context) (remote.Tried, error) {
			tries++
			return tried, errNoAnswer
		})
		require.Equal(t, errNoAnswer, err, name)
		require.Equal(t, 1, tries, name)
	}
}

// Facts are requested until they are known, by one goroutine at a time.
func TestFacts(t *testing.T) {
	facts := remote.NewFacts[string]()
	asked := 0
	ask := func() (string, error) {
		if asked++; asked == 1 {
			return "", errNoAnswer
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := facts.Learn(ctx, func() (string, error) { return "", nil })
		require.ErrorIs(t, err, context.Canceled, "somebody else is asking")
		return "version 3", nil
	}
	_, err := facts.Learn(t.Context(), ask)
	require.Equal(t, errNoAnswer, err)
	for range 2 {
		told, err := facts.Learn(t.Context(), ask, func(f *string) error {
			*f += ", with an index"
			return nil
		})
		require.NoError(t, err)
		require.Contains(t, told, "version 3, with an index")
	}
	require.Equal(t, 2, asked)
	_, err = facts.Learn(t.Context(), ask, func(*string) error { return errNoAnswer })
	require.Equal(t, errNoAnswer, err)
}
