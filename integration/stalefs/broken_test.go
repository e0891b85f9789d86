//go:build linux

package stalefs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/broken"
)

// A test that cannot fail proves nothing. With a protocol that breaks one of its
// rules the same run has to find two holders at once.
func TestBrokenVariantsAreCaught(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Minute // most are caught within seconds
	for _, v := range broken.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := newStress(t, v.FS(), 0)
			s.calm = calmFor(v)
			start := time.Now()
			s.run(limit)
			caught := s.check()
			require.Error(t, caught, "%s: nobody noticed", v.What)
			t.Logf("after %s: %v", time.Since(start).Round(time.Millisecond), caught)
		})
	}
}

// calmFor is the longest time between two cuts of one host that brings a mistake to
// light soon: a removal by path harms who was away for a moment, and who counts signs
// of life wrongly takes a lock from somebody who was there all the time.
func calmFor(v broken.Variant) time.Duration {
	if v.Name == broken.UnlinkByPath {
		return 2 * stressTTL
	}
	return 20 * stressTTL
}
