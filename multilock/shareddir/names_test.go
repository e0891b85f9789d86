package shareddir

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: none (docs/security.md)
func TestNamesAreBounded(t *testing.T) {
	long, shown := strings.Repeat("x", 255), 0
	endless := func(visit func(string) bool) error {
		for shown = 0; shown < 2_000_000 && visit(long); {
			shown++
		}
		return nil
	}
	_, err := Names(endless, func(string) bool { return true })
	require.ErrorContains(t, err, "more than 526344 names; move unneeded files away")
	require.Less(t, shown, 600_000)
	names, err := Names(endless, func(string) bool { return false })
	require.NoError(t, err)
	require.Empty(t, names)
	require.Equal(t, 2_000_000, shown, "what is not wanted counts for nothing")
	_, err = Names(func(visit func(string) bool) error { visit("a"); return errors.ErrUnsupported }, func(string) bool { return true })
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
