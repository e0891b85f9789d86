package source_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// The clock is read if there is no recent reading. A reading is extrapolated from the end of the
// request for the early time, and from its start for the late one.
func TestClockIsCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c source.Clock
		asked, server := 0, time.Unix(1000, 0)
		read := func(age time.Duration) (early, late time.Duration) {
			a, b, err := c.Read(age, func() (time.Time, error) {
				asked++
				time.Sleep(time.Second)
				return server, nil
			})
			require.NoError(t, err)
			return a.Sub(server).Round(100 * time.Millisecond), b.Sub(server).Round(100 * time.Millisecond)
		}
		early, late := read(source.ClockCarried)
		require.Equal(t, []time.Duration{0, time.Second}, []time.Duration{early, late})
		time.Sleep(10 * time.Second)
		early, late = read(source.ClockCarried)
		require.Equal(t, []time.Duration{10 * time.Second, 11 * time.Second}, []time.Duration{early, late})
		require.Equal(t, 1, asked)
		read(source.ClockFresh)
		require.Equal(t, 2, asked)
	})
}

// A failed reading does not discard an earlier one.
func TestClockThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c source.Clock
		trouble := errors.New("no answer")
		fails := func() (time.Time, error) { return time.Time{}, trouble }
		_, _, err := c.Read(time.Minute, fails)
		require.ErrorIs(t, err, trouble)
		_, _, err = c.Read(time.Minute, func() (time.Time, error) { return time.Unix(1000, 0), nil })
		require.NoError(t, err)
		_, _, err = c.Read(0, fails)
		require.ErrorIs(t, err, trouble)
		_, _, err = c.Read(time.Minute, fails)
		require.NoError(t, err)
	})
}
