package process

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is how often a process is looked at where the kernel cannot wake
// us: a look costs microseconds, and a second late harms nobody who waits for
// the end of a process.
const pollInterval = time.Second

// Wait returns nil as soon as the process is Gone in the sense of
// [Identity.Judge], at once if it already is. It does not have to be a child of
// the caller, and is not reaped. self must be the identity of the calling
// process.
//
// When ctx ends first, the error wraps its cause. When nothing can be known
// about the process from here (Unknown), Wait returns an error that says why
// instead of waiting for something it could not see.
//
// On Linux it sleeps on a pidfd (pidfd_open(2), since 5.3) and blocks no
// thread; where there is none it looks once a second.
func (id Identity) Wait(ctx context.Context, self Identity) error {
	if err := id.await(ctx, self); err != nil {
		return fmt.Errorf("wait for process %d: %w", id.PID, err)
	}
	return nil
}

// poll waits by looking again and again.
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
