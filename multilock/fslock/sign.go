package fslock

import (
	"time"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// sign is what a sign of life changes: the times of the lock's directory, which the
// server gives it.
type sign struct{ modified, changed time.Time }

func signOf(info vfs.Info) sign {
	// In one zone, equal moments are equal values.
	return sign{info.ModTime.UTC(), info.ChangeTime.UTC()}
}

// fastest is the least time that a sample may take: on a loaded machine the
// scheduler alone takes that long.
const fastest = 25 * time.Millisecond

// limitsFor says how samples have to come of a holder that gives a sign of life every
// beat.
func limitsFor(beat time.Duration) source.WatchLimits {
	return source.WatchLimits{Slow: max(beat/4, fastest), Gap: max(beat, 2*fastest)}
}

// grain is the longest step that the times of a sign may have. A time that happens to
// have no fraction costs nothing but a moment's patience.
func (s sign) grain() time.Duration {
	if shareddir.WholeSeconds(s.modified) {
		return shareddir.Coarsest
	}
	return 0
}
