package trial

import (
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// signs are the signs of life that a participant's seat gave, and how late this host has seen
// them. Clients that remember attributes, and servers that replicate later, show them late, and
// who sees none for a TTL takes the lock of a holder who lives.
type signs struct {
	last  time.Duration // of the last one: when it was given, after the lock was acquired
	first time.Time     // when the first look that showed it was over
	seen  int           // how many came while this host watched
	late  time.Duration // by how much a next one was missing, at worst
	dumb  bool          // the source does not tell when the last one was, or the next is due
}

// note takes into account what a look showed that began at start.
func (s *signs) note(seen multilock.Sighting, start time.Time) {
	if seen.Age == source.Unknown || seen.Silence == source.Unknown || seen.Record.Heartbeat == 0 {
		s.dumb = true
		return
	}
	switch last := seen.Age - seen.Silence; {
	case s.first.IsZero():
		s.last, s.first = last, time.Now()
	case last != s.last:
		s.last, s.first = last, time.Now()
		s.seen++
	default: // the next was due a heartbeat after this one, which was given before it was seen
		s.late = max(s.late, start.Sub(s.first)-seen.Record.Heartbeat)
	}
}

// enough says whether it is known how late signs of life are seen: one came, or none for a TTL.
func (s *signs) enough(ttl time.Duration) bool {
	return s.seen > 0 || s.dumb || !s.first.IsZero() && time.Since(s.first) > ttl
}

// How late signs of life come, in heartbeats, that is worth a word, as a busy host's own do, and
// that is worth a warning.
const (
	slightlyLate = 1
	tooLate      = 3
	// roomForLate is how much longer a TTL should be than signs of life are late.
	roomForLate = 4
)

// fact is what to tell of those of a participant, "" if they come in time.
func (s *signs) fact(beat time.Duration) string {
	if s.late < slightlyLate*beat {
		return ""
	}
	return fmt.Sprintf("its signs of life were seen up to %s late", console.Short(s.late))
}

// areLate says whether hosts may take the lock of a holder who lives.
func (s *signs) areLate(beat time.Duration) bool { return s.late >= tooLate*beat }

// advice is what to do about late ones.
func (s *signs) advice() string {
	return fmt.Sprintf("mount without a cache of attributes, or give all locks a --ttl of %s or more: who sees no sign of life for a TTL takes the lock",
		console.Short((roomForLate * s.late).Round(time.Second)))
}
