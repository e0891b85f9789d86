package shareddir

import (
	"iter"
	"math/rand/v2"
	"time"
)

// A step starts over when things moved under it. Each time somebody else made
// progress, so a few rounds follow each other at once.
//
// Then they pause. A kernel lets those who wait for a directory in one after the
// other: contenders that make the group and barriers that remove it, all without a
// pause, can fall into step and get in each other's way for ever. Pauses that are
// drawn break the step.
const (
	promptRounds  = 10
	maxRounds     = 200
	maxRoundPause = 20 * time.Millisecond
)

// Rounds yields as often as a step may start over, two seconds' worth.
func Rounds() iter.Seq[int] {
	return func(yield func(int) bool) {
		bound := 100 * time.Microsecond
		for n := range maxRounds {
			if n >= promptRounds {
				time.Sleep(rand.N(bound)) //nolint:gosec // jitter needs no secrecy
				bound = min(2*bound, maxRoundPause)
			}
			if !yield(n) {
				return
			}
		}
	}
}
