package nfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// A lock that a process on one host takes is held for the others at the very
// next look, with its holder's name, and free at the very next look after its
// release, although they have cached what was before.
func TestHeldOnOneHostIsSeenOnTheOthers(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		holder := newActor(t, h, p)
		var lookers []*actor
		for _, o := range others {
			lookers = append(lookers, newActor(t, o, p))
		}
		for range 3 {
			for _, l := range lookers {
				require.Equal(t, "free", l.must(t, order{Do: "look", Name: "job"}).State)
			}
			token := holder.must(t, order{Do: "acquire", Name: "job", TTL: long}).Token
			for _, l := range lookers {
				refused := l.do(t, order{Do: "try", Name: "job"})
				require.Contains(t, refused.Error, "is held by "+h.name+" pid ")
				require.Equal(t, token, refused.Token)
				require.Equal(t, h.name, refused.Host)
				require.Equal(t, "held", l.must(t, order{Do: "look", Name: "job"}).State)
			}
			holder.must(t, order{Do: "release"})
		}
		p.requireEmpty(t)
	})
}

// The lock goes around between the hosts. Each acquires it without waiting once
// its predecessor's release has returned, and is then the one that the others see.
func TestHandOverBetweenHosts(t *testing.T) {
	needLab(t)
	p := newPlace(t)
	var actors []*actor
	for _, h := range hosts() {
		actors = append(actors, newActor(t, h, p))
	}
	for round := range 4 * len(actors) {
		a := actors[round%len(actors)]
		token := a.must(t, order{Do: "try", Name: "job", TTL: long}).Token
		for _, other := range actors {
			require.Equal(t, token, other.must(t, order{Do: "look", Name: "job"}).Token)
		}
		a.must(t, order{Do: "release"})
	}
	p.requireEmpty(t)
}

// Waiting processes on all hosts take turns, and no two are inside at a time.
func TestHostsTakeTurns(t *testing.T) {
	needLab(t)
	const each, rounds = 2, 10
	p := newPlace(t)
	counter := filepath.Join(outside(t), "counter")
	require.NoError(t, os.WriteFile(counter, []byte("0"), 0o666))
	var actors []*actor
	for _, h := range hosts() {
		for range each {
			actors = append(actors, newActor(t, h, p))
		}
	}
	for _, a := range actors {
		a.tell(t, order{Do: "count", Name: "job", TTL: long, Path: counter, N: rounds})
	}
	for _, a := range actors {
		require.Empty(t, a.hear(t).Error)
	}
	number, err := readNumber(counter)
	require.NoError(t, err)
	require.Equal(t, len(actors)*rounds, number)
	requireHistory(t, counter+".events")
	p.requireEmpty(t)
}

func requireHistory(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	events, err := locktest.ReadEvents(f)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	require.NoError(t, locktest.Check(events))
}

// The process that holds a lock dies. A rival on its host sees that at once; one
// on another host, where there is nothing to see, once it was silent long enough.
func TestDeadHolder(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		for name, rival := range map[string]host{"rival beside it": h, "rival elsewhere": others[0]} {
			t.Run(name, func(t *testing.T) {
				p := newPlace(t)
				ttl := shortTTL
				if rival == h {
					ttl = long
				}
				holder := newActor(t, h, p)
				holder.must(t, order{Do: "acquire", Name: "job", TTL: ttl})
				holder.end()
				successor := newActor(t, rival, p)
				successor.must(t, order{Do: "acquire", Name: "job", TTL: long})
				require.Len(t, broken(t, p.source(t, rival)), 1)
				successor.must(t, order{Do: "release"})
				p.requireEmpty(t)
			})
		}
	})
}

// Whoever breaks a lock by force tells its holder on another host, whose next
// look for itself finds the lock gone. The successor is out of its reach.
func TestBrokenByForceOnAnotherHost(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lock := try(t, p.source(t, h), "job", multilock.Options{TTL: long})
		breaker := p.source(t, others[0])
		_, err := multilock.Break(within(t), breaker, "job", multilock.Want{Alive: true})
		require.NoError(t, err)
		successor := try(t, p.source(t, others[1]), "job", multilock.Options{TTL: long})
		require.ErrorIs(t, lock.Verify(within(t)), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(within(t)), multilock.ErrLost)
		require.NoError(t, successor.Verify(within(t)))
		require.Equal(t, successor.Record().Token, p.record(t, "job").Token)
	})
}

// Fencing numbers only grow, whichever host draws them.
func TestFencesGrowAcrossHosts(t *testing.T) {
	needLab(t)
	p := newPlace(t)
	highest := uint64(0)
	for range 3 {
		for _, h := range hosts() {
			lock := try(t, p.source(t, h), "job", multilock.Options{TTL: long})
			number, err := lock.Fence(within(t))
			require.NoError(t, err)
			require.Greater(t, number, highest)
			highest = number
			require.NoError(t, lock.Release(within(t)))
		}
	}
	require.Empty(t, p.entries(t, fslock.DefaultGroup))
}
