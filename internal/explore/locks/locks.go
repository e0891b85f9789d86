// Package locks provides locks on the simulated server to hosts of package explore.
package locks

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// The terms of all locks.
const (
	TTL  = 40 * time.Second
	Beat = 4 * time.Second
)

// Claim has these terms.
var Claim = source.Claim{TTL: TTL, Heartbeat: Beat}

// Scenario returns a scenario whose hosts have all held the lock called "lock" before.
func Scenario(actors ...func(*explore.Actor)) *explore.Scenario {
	sc := &explore.Scenario{
		Mount:       simnfs.Options{V4: true, MinAge: 30 * time.Second, MaxAge: time.Minute},
		Preemptions: 1, Remember: true, Kinds: []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze, explore.Lost, explore.Failed, explore.Twice, explore.Late},
		Looks: true, Pause: 3 * TTL, Nap: TTL - Beat, Grid: Beat / 2, Most: 5000,
		Private: func(r simnfs.Request) bool {
			return strings.HasPrefix(r.Path, "/.multilock") && !strings.HasPrefix(r.Path, "/.multilock/groups/.locks/") && r.Kind != "rename"
		},
		Prepare: hadItBefore,
	}
	for i, run := range actors {
		sc.Actors = append(sc.Actors, explore.Program{Name: string(rune('A' + i)), Run: run})
	}
	return sc
}

// WhoWeAre is cached because it costs more than a schedule.
var WhoWeAre = sync.OnceValues(process.Self)

// Source opens the locks on the actor's host.
func Source(a *explore.Actor) (*fslock.Source, error) {
	self, err := WhoWeAre()
	if err != nil {
		return nil, err
	}
	return fslock.Open(fslock.Options{Base: "/", FS: a.FS(), Self: OnHost(self, a.Host), Clock: a.Now})
}

// OnHost returns the identity of a process with the same number on another host.
func OnHost(self process.Identity, name string) process.Identity {
	host := "host" + name
	self.Host, self.Machine, self.Boot = host, "machine of "+host, "boot of "+host
	return self
}

// hadItBefore makes the host test its file system, and its client cache the names.
func hadItBefore(a *explore.Actor) {
	lease, err := TryOnce(a, "lock")
	if err == nil {
		err = lease.Release(context.Background())
	}
	if err != nil {
		a.World().Violate("prepare: %v", err)
	}
}

// TryOnce makes one attempt at a lock.
func TryOnce(a *explore.Actor, name string) (source.Lease, error) {
	src, err := Source(a)
	if err != nil {
		return nil, err
	}
	c, err := src.Contend(context.Background(), name, Claim, source.StalePolicy{})
	if err != nil {
		return nil, err
	}
	return c.Try(context.Background())
}

// TokenIn returns the token of a record or a result.
func TokenIn(text []byte) string {
	var told struct{ Token string }
	at := bytes.IndexByte(text, '{')
	if at < 0 {
		return ""
	}
	if _, rest, written := bytes.Cut(text[at:], []byte(`"token":"`)); written && bytes.HasSuffix(text, []byte("}\n")) {
		token, _, _ := bytes.Cut(rest, []byte(`"`))
		return string(token)
	}
	_ = json.Unmarshal(text[at:], &told) // a truncated one has none
	return told.Token
}

// Holder returns the token of the server's current holder, "" if the lock is free.
func Holder(w *explore.World, name string) string {
	return TokenIn(w.Server.Content(".locks/" + name + "/" + name + ".locked"))
}

// Result returns the server's result of a name.
func Result(w *explore.World, name string) []byte {
	return w.Server.Content(".multilock/groups/.locks/done/" + name)
}
