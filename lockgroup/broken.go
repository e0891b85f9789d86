package lockgroup

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock"
)

// chronicleSlack is how far the clocks of hosts may be apart.
const chronicleSlack = 24 * time.Hour

// recall finds, when the group has become vacant, those holders who did not give
// their locks back: somebody else has cleared them away, such as the barrier of
// another host. The history tells who; a source that keeps none cannot.
func (h *holders) recall(ctx context.Context, since time.Time) error {
	chronicle, ok := h.src.(multilock.Chronicle)
	if !ok || !h.sawAny() {
		return nil
	}
	events, err := prompt(ctx, func(ctx context.Context) ([]multilock.Event, error) {
		return chronicle.History(ctx, since.Add(-chronicleSlack))
	})
	if err != nil {
		return errors.Join(errors.New("who was cleared away cannot be learned"), err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		seen, known := h.ever[e.Token]
		if e.What != multilock.Broke || !known || takenOver(events, e) {
			continue
		}
		seen.Sighting.State, seen.Sighting.Why = multilock.Dead, e.Why
		h.crashed[seen.Name] = seen.Sighting
	}
	return nil
}

func (h *holders) sawAny() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ever) > 0
}

// takenOver says whether a lock was broken by somebody who took it then: the job
// is that one's now. Processes are compared, not the times of different hosts.
func takenOver(events []multilock.Event, broke multilock.Event) bool {
	for _, e := range events {
		if e.What == multilock.Acquired && e.Name == broke.Name && e.Token != broke.Token && e.By == broke.By {
			return true
		}
	}
	return false
}
