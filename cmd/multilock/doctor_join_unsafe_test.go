//go:build unix

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// The worlds of these tests are filesystems as they should not be. Each of them is a
// source that goes wrong in one way.

// generous is a source that grants everybody a lock, whoever has it.
type generous struct {
	multilock.Source
	only string // the name for which it does that, "" for all
}

func (g generous) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	c, err := g.Source.Contend(ctx, name, claim, patience)
	if err != nil || (g.only != "" && name != g.only) {
		return c, err
	}
	return generousContender{c, source.Record{Name: name, Token: "granted", Claim: claim}}, nil
}

type generousContender struct {
	source.Contender
	record source.Record
}

func (c generousContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if errors.Is(err, multilock.ErrHeld) {
		return granted{record: c.record}, nil
	}
	return lease, err
}

// granted is a lease of a lock that somebody else has.
type granted struct {
	bareLease
	record source.Record
}

func (granted) Since() boottime.Instant       { return boottime.Now() }
func (g granted) Record() source.Record       { return g.record }
func (granted) Renew(context.Context) error   { return nil }
func (granted) Release(context.Context) error { return nil }
func (granted) Close() error                  { return nil }

// requireUnsafe requires that all say so, and that each of the texts was said by one.
func requireUnsafe(t *testing.T, all []attended, texts ...string) {
	t.Helper()
	said := ""
	for _, a := range all {
		require.NotContains(t, a.severities(), "fine join", a.text())
		require.Contains(t, a.text(), string(source.SeverityUnusable))
		said += a.text()
	}
	for _, text := range texts {
		require.Contains(t, said, text)
	}
}

func worldOf(t *testing.T, wrap func(name string, locks multilock.Source) multilock.Source) []*openedSource {
	t.Helper()
	hosts := hostsIn(t, t.TempDir(), "alpha", "beta")
	for _, src := range hosts {
		src.locks = wrap(src.self.Host, src.locks)
	}
	return hosts
}

func TestJoinWhereEverybodyIsGrantedALock(t *testing.T) {
	t.Parallel()
	for what, only := range map[string]string{"any lock": "", "the lock that all want": joinName} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := gather(t.Context(), quickly(2), worldOf(t, func(_ string, locks multilock.Source) multilock.Source { return generous{locks, only} })...)
			requireUnsafe(t, all, "locks are NOT SAFE here: this host was given the lock", "it has seen that locks are NOT SAFE here")
		})
	}
}

// divided is a source in which each host has a lock of its own under the name that
// all want: as where each sees its own copy for a while.
type divided struct {
	multilock.Source
	host string
}

func (d divided) own(name string) string {
	if name == joinName {
		return name + "-of-" + d.host
	}
	return name
}

func (d divided) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	return d.Source.Contend(ctx, d.own(name), claim, patience)
}

func (d divided) Observe(ctx context.Context, name string, patience multilock.Patience) (source.Observer, error) {
	return d.Source.Observe(ctx, d.own(name), patience)
}

// Each turn looks good, and nobody is ever kept out.
func TestJoinWhereEachHasItsOwn(t *testing.T) {
	t.Parallel()
	pace := quickly(2)
	pace.limit = time.Second
	all := gather(t.Context(), pace, worldOf(t, func(host string, locks multilock.Source) multilock.Source { return divided{locks, host} })...)
	requireUnsafe(t, all, " pid 7 never kept this host out") // the other one may see that one leave first
}

// miscounting is a source with wrong fencing numbers.
type miscounting struct {
	multilock.Source
	next func() uint64
}

func (m miscounting) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	c, err := m.Source.Contend(ctx, name, claim, patience)
	return miscountingContender{c, m.next}, err
}

type miscountingContender struct {
	source.Contender
	next func() uint64
}

func (m miscountingContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := m.Contender.Try(ctx)
	if err != nil {
		return nil, err
	}
	return miscountingLease{lease, m.next}, nil
}

type miscountingLease struct {
	source.Lease
	next func() uint64
}

func (m miscountingLease) Fence(context.Context) (uint64, error) { return m.next(), nil }

// Two hosts that draw the same numbers do not see the same files, or saw them at
// the same time.
func TestJoinWhereNumbersRepeat(t *testing.T) {
	t.Parallel()
	all := gather(t.Context(), quickly(2), worldOf(t, func(_ string, locks multilock.Source) multilock.Source {
		var own uint64
		return miscounting{locks, func() uint64 { own++; return own }}
	})...)
	for _, a := range all {
		require.Contains(t, a.severities(), "unusable join")
		require.Regexp(t, `a turn of this host and one of (alpha|beta) pid 7 had the same fencing number 1:`, a.text())
	}
}

func TestJoinWhereNumbersDoNotGrow(t *testing.T) {
	t.Parallel()
	number := uint64(100)
	hosts := worldOf(t, func(host string, locks multilock.Source) multilock.Source {
		if host == "beta" {
			return locks
		}
		return miscounting{locks, func() uint64 { number--; return number }}
	})
	requireUnsafe(t, gather(t.Context(), quickly(2), hosts...), "numbers of this host's turns do not grow: 98 came after 99", "it has seen that locks are NOT SAFE here")
}

// forgetful is a source that loses the lock that all want while it is held.
type forgetful struct{ multilock.Source }

func (f forgetful) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	c, err := f.Source.Contend(ctx, name, claim, patience)
	if err != nil || name != joinName {
		return c, err
	}
	return forgetfulContender{c, f.Source, name}, nil
}

type forgetfulContender struct {
	source.Contender
	locks multilock.Source
	name  string
}

func (c forgetfulContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if err == nil {
		_, err = multilock.Break(ctx, c.locks, c.name, multilock.Want{Alive: true})
	}
	return lease, err
}

func TestJoinWhereLocksGetLost(t *testing.T) {
	t.Parallel()
	all := gather(t.Context(), quickly(2), worldOf(t, func(_ string, locks multilock.Source) multilock.Source { return forgetful{locks} })...)
	requireUnsafe(t, all, "the lock was taken away from this host while it held it")
}
