package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever is killed, whichever host crashes or is cut off, and whenever: each job
// gets one result, and is never run again once that is in place.
func TestBatchThroughCrashes(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("takes minutes; TestBatchCommandThroughCrashes shows the same with fewer jobs")
	}
	r := newTrial(t, 2000, 4)
	r.startAll()
	r.strike(blows{kills: 30, crashes: 8, cuts: 6})
	r.end()
	require.Empty(t, r.faults())
	r.requireOpen()
}

// The same with the command, and with jobs that are commands.
func TestBatchCommandThroughCrashes(t *testing.T) {
	needCommand(t)
	r := newTrial(t, jobsAtLength(30, 600), 3).asCommand()
	r.startAll()
	r.strike(blows{kills: 2, crashes: 1}.atLength(blows{kills: 12, crashes: 4, cuts: 3}))
	r.end()
	require.Empty(t, r.faults())
	r.requireOpen()
}

// A test that cannot fail proves nothing: workers that make a mistake are caught,
// without any blow. One list may go well with them.
func TestBrokenBatchesAreCaught(t *testing.T) {
	needLab(t)
	for _, variant := range []string{blind, hasty} {
		t.Run(variant, func(t *testing.T) {
			if testing.Short() && variant != blind {
				t.Skip("takes half a minute; one variant shows that mistakes are seen")
			}
			const lists = 20
			for range lists {
				r := newTrial(t, 24, 4)
				r.variant = variant
				r.startAll()
				r.end()
				if faults := r.faults(); len(faults) > 0 {
					t.Log(faults[0])
					return
				}
			}
			t.Fatal("nobody noticed")
		})
	}
}
