package schedules_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/internal/fakes3"
	"github.com/multilock/go/multilock/s3lock"
	"github.com/multilock/go/multilock/source"
)

// bucket is a store in memory, and the sources of its clients.
type bucket struct {
	ledger
	store   *fakes3.Store
	sources map[string]*s3lock.Source
}

func newBucket() any {
	b := &bucket{ledger: newLedger(), store: fakes3.New(), sources: map[string]*s3lock.Source{}}
	b.store.Put("jobs/passed", "passed")
	return b
}

func bucketOf(w *explore.World) *bucket { return w.Facts.(*bucket) }

func openBucket(host string, way http.RoundTripper) (*s3lock.Source, error) {
	self, err := locks.WhoWeAre()
	if err != nil {
		return nil, err
	}
	return s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: "s3://bucket/jobs?endpoint=localhost", Transport: way}, Self: locks.OnHost(self, host)})
}

// looksUp opens the actor's source, which learns that the store has passed the test.
func looksUp(a *explore.Actor) {
	b := bucketOf(a.World())
	src, err := openBucket(a.Host, b.store.Transport(a.Ask))
	if err == nil {
		_, err = src.Now(context.Background())
	}
	if err != nil {
		a.World().Violate("prepare: %v", err)
		return
	}
	b.sources[a.Name] = src
}

// inObject returns the token of the lock's holder, "" if the lock is free.
func inObject(w *explore.World) string {
	token, err := fakes3.Holder(bucketOf(w).store.Get("jobs/lock/=/lock"))
	if err != nil {
		w.Violate("the lock's object cannot be read: %v", err)
	}
	return token
}

// hasTheObject reports a violation if a process that trusts its lock is not the one in the object.
func hasTheObject(w *explore.World, a *explore.Actor) string {
	if token := inObject(w); token != a.Has {
		return a.Name + " trusts its lock, but the object has " + token
	}
	return ""
}

func inBucket(during func(*explore.Actor, source.Lease)) func(*explore.Actor) {
	return func(a *explore.Actor) {
		c, err := bucketOf(a.World()).sources[a.Name].Contend(context.Background(), "lock", locks.Claim, source.StalePolicy{})
		if err != nil {
			a.World().Violate("contend: %v", err)
			return
		}
		locks.Owner(hasTheObject).Contends(a, c, 0, func(lease source.Lease) { during(a, lease) })
	}
}

// onBucket returns a scenario in which a proxy may send a request twice.
func onBucket(during func(*explore.Actor, source.Lease)) *explore.Scenario {
	sc := onServer(newBucket, looksUp, inBucket(during), inBucket(during))
	sc.Kinds = append(sc.Kinds, explore.Twice)
	sc.Owns = hasTheObject
	return sc
}

func TestExploreS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	sc := onBucket(func(a *explore.Actor, lease source.Lease) { locks.Owner(hasTheObject).GivesSigns(a, lease, 2) })
	sc.AtEnd = func(w *explore.World) { isFree(w, inObject(w)) }
	explored(t, sc)
	sc.Preemptions, sc.Faults, sc.InTurn = 1, 1, true
	proven(t, sc.Exhaust(t, 10*time.Minute)) // others write between a write and its refused copy
}

func TestExploreS3Ledger(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	sc := onBucket(func(a *explore.Actor, lease source.Lease) { bucketOf(a.World()).commits(a, lease) })
	sc.AtEnd = func(w *explore.World) {
		src, err := openBucket("reader", bucketOf(w).store.Transport(undisturbed))
		bucketOf(w).compares(w, src, err, "lock")
	}
	explored(t, sc)
}
