package bounded_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/bounded"
)

// Call returns as soon as its context ends. Change lets a function finish that has begun, but waits no longer
// than the settling time for one that hangs.
func TestChangeLetsAFunctionFinish(t *testing.T) {
	type call func(context.Context, func(context.Context) (bool, error)) (bool, error)
	for name, test := range map[string]struct {
		do       call
		takes    time.Duration
		finished bool
		after    time.Duration
	}{
		"Call":                {bounded.Call[bool], 1500 * time.Millisecond, false, time.Second},
		"Change":              {bounded.Change[bool], 1500 * time.Millisecond, true, 1500 * time.Millisecond},
		"Change that hangs":   {bounded.Change[bool], time.Hour, false, time.Second + bounded.Settling},
		"Change that returns": {bounded.Change[bool], time.Millisecond, true, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				defer time.Sleep(test.takes) // the bubble ends when the function has returned
				start := time.Now()
				finished, err := test.do(ctx, func(context.Context) (bool, error) {
					time.Sleep(test.takes)
					return true, nil
				})
				require.Equal(t, test.after, time.Since(start))
				require.Equal(t, test.finished, finished)
				if !test.finished {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		})
	}
}
