package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/calls"
)

// A run that costs a system call more on the shared directory, or less, has to say so here. The job is longer
// than the time after which a run's beginning is recorded, so that it always is.
func TestCostOfARun(t *testing.T) {
	t.Parallel()
	want := map[string]int{"ext4": 80, "tmpfs": 81} // a mount in memory is told apart by its number, which costs a call
	for kind, dir := range calls.LocalDirs(t) {
		t.Run(kind, func(t *testing.T) {
			s := newStation(t)
			s.base = dir
			s.must("run", "-n", "x", "--", "true")
			made := calls.On(t, dir, s.command("run", "-n", "x", "--", "sleep", "1"))
			require.Len(t, made, want[kind], "%q", calls.Names(made))
		})
	}
}
