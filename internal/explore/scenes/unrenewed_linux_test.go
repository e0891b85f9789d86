package scenes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/source"
)

// unrenewed is a lock without renewals: its holder, and the earliest start of the hold.
type unrenewed struct {
	token string
	since time.Time
}

// takes acquires the lock, breaking it if it is dead, and returns when the attempt began.
func takes(a *explore.Actor, claim source.Claim) (source.Lease, time.Time) {
	ctx := context.Background()
	src, err := locks.Source(a)
	if err != nil {
		a.World().Violate("open: %v", err)
		return nil, time.Time{}
	}
	c, err := src.Contend(ctx, "lock", claim, source.StalePolicy{})
	for !a.Gone() {
		if err != nil {
			a.Note("contend: %v", err)
			a.Sleep(exploreBeat)
			c, err = src.Contend(ctx, "lock", claim, source.StalePolicy{})
			continue
		}
		begun := time.Now()
		lease, failed := c.Try(ctx)
		if a.Note("try: %v", failed); failed == nil {
			return lease, begun
		}
		if seen, err := c.Look(ctx); err == nil && seen.State == source.StateDead {
			a.Note("BREAKS: %s: %v", seen.Why, c.Break(ctx))
			continue
		}
		a.Sleep(exploreBeat / 2)
	}
	return nil, time.Time{}
}

// A lock without renewals is held for its TTL, also after waiting for it; staged files may be as old as half
// a heartbeat interval of another lock.
// Rule: arrival, silence
func TestExploreUnrenewed(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) {
		for _, signs := range []int{3, 1} {
			if lease, _ := takes(a, locks.Claim); lease != nil {
				for range signs {
					a.Sleep(exploreBeat)
					a.Note("renewed: %v", lease.Renew(context.Background()))
				}
				a.Note("released: %v", lease.Release(context.Background()))
			}
			a.Sleep(exploreBeat)
		}
	}, func(a *explore.Actor) {
		if lease, begun := takes(a, source.Claim{TTL: exploreTTL}); lease != nil {
			*a.World().Facts.(*unrenewed) = unrenewed{lease.Record().Token, begun}
		}
	})
	sc.Owns, sc.AtEnd, sc.Lax = nil, nil, true
	sc.Facts = func() any { return &unrenewed{} }
	sc.Always = func(w *explore.World) string {
		f := w.Facts.(*unrenewed)
		held := time.Since(f.since)
		if f.token == "" || held >= exploreTTL-exploreBeat/2 || locks.Holder(w, "lock") == f.token {
			return ""
		}
		return fmt.Sprintf("I3: a lock that is to be held for %s is gone after %s", exploreTTL, held)
	}
	explored(t, sc, 2, 0)
}
