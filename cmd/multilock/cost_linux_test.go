package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/calls"
)

// No run makes more system calls on the shared directory than this. The job takes longer than the time after which
// its start is recorded, so that it always is recorded. On a busy machine there can be more, so the least counts.
func TestCostOfARun(t *testing.T) {
	t.Parallel()
	most := map[string]int{"ext4": 80, "tmpfs": 81} // a tmpfs has no identity but its device number, which takes a call
	for kind, dir := range calls.LocalDirs(t) {
		t.Run(kind, func(t *testing.T) {
			s := newStation(t)
			s.base = dir
			s.must("run", "-n", "x", "--", "true")
			var least []string
			for n := 0; n < 5 && (n == 0 || len(least) > most[kind]); n++ {
				if made := calls.On(t, dir, s.command("run", "-n", "x", "--", "sleep", "1")); n == 0 || len(made) < len(least) {
					least = made
				}
			}
			require.LessOrEqual(t, len(least), most[kind], "%q", calls.Names(least))
		})
	}
}
