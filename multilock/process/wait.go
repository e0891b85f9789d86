package process

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is how often a process is checked if the kernel cannot wake us: a check costs microseconds,
// and a second of delay is acceptable.
const pollInterval = time.Second

// Wait returns nil as soon as the process is Gone as defined by [Identity.Judge], at once if it already is.
// The process does not have to be a child of the caller, and is not reaped. self must be the identity of
// the calling process.
//
// If ctx ends first, the error wraps its cause. If nothing can be known about the process from here
// (Unknown), Wait returns an error with the reason instead of waiting for an end that it cannot see.
//
// On Linux it sleeps on a pidfd (pidfd_open(2), since 5.3) and blocks no thread; without a pidfd it polls
// once a second.
func (id Identity) Wait(ctx context.Context, self Identity) error {
	if err := id.await(ctx, self); err != nil {
		return fmt.Errorf("wait for process %d: %w", id.PID, err)
	}
	return nil
}

// poll waits by checking repeatedly.
func (id Identity) poll(ctx context.Context, self Identity) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if gone, err := id.gone(self); gone || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (id Identity) gone(self Identity) (bool, error) {
	found := id.Judge(self)
	if found.Life == Unknown {
		return false, fmt.Errorf("cannot see it: %s", found.Why)
	}
	return found.Life == Gone, nil
}
