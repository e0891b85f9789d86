//go:build unix

package jointest

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// bent is a source with one fault, which filesystems should not have.
type bent struct {
	multilock.Source
	own   func(name string) string                                                      // maps a name to the name of the lock that it uses
	tried func(wanted source.Record, got source.Lease, err error) (source.Lease, error) // changes the outcome of an attempt
}

func (b bent) lock(name string) string {
	if b.own != nil {
		return b.own(name)
	}
	return name
}

func (b bent) Observe(ctx context.Context, name string, policy multilock.StalePolicy) (source.Observer, error) {
	return b.Source.Observe(ctx, b.lock(name), policy)
}

func (b bent) Contend(ctx context.Context, name string, claim source.Claim, policy multilock.StalePolicy) (source.Contender, error) {
	c, err := b.Source.Contend(ctx, b.lock(name), claim, policy)
	if err != nil || b.tried == nil {
		return c, err
	}
	return bentContender{c, b, source.Record{Name: name, Token: "granted", Claim: claim}}, nil
}

type bentContender struct {
	source.Contender
	bent   bent
	wanted source.Record
}

func (c bentContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	return c.bent.tried(c.wanted, lease, err)
}

// granted is a lease of a lock that another host holds.
type granted struct {
	source.Lease
	record source.Record
}

func (granted) Since() boottime.Instant       { return boottime.Now() }
func (g granted) Record() source.Record       { return g.record }
func (granted) Renew(context.Context) error   { return nil }
func (granted) Release(context.Context) error { return nil }
func (granted) Close() error                  { return nil }

func (granted) Fence(context.Context) (uint64, error) { return 0, multilock.ErrUnsupported }

// requireUnsafe requires that all hosts report harm, and that each of the texts is reported by one.
func requireUnsafe(t *testing.T, all []attended, texts ...string) {
	t.Helper()
	said := ""
	for _, a := range all {
		require.NotContains(t, a.severities(), "ok join", a.text())
		require.Contains(t, a.text(), string(source.SeverityUnusable))
		said += a.text()
	}
	for _, text := range texts {
		require.Contains(t, said, text)
	}
}

// bend returns two hosts with faulty sources.
func bend(t *testing.T, how func(host string, src multilock.Source) bent) []*openedSource {
	t.Helper()
	hosts := hostsIn(t, t.TempDir(), "alpha", "beta")
	for _, src := range hosts {
		b := how(src.self.Host, src.locks)
		b.Source = src.locks
		src.locks = b
	}
	return hosts
}

func TestJoinWhereAllAreGrantedALock(t *testing.T) {
	t.Parallel()
	for what, only := range map[string]string{"any lock": "", "the contended lock": joinName} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := gather(t.Context(), quickly(2), bend(t, func(string, multilock.Source) bent {
				return bent{tried: func(wanted source.Record, got source.Lease, err error) (source.Lease, error) {
					if errors.Is(err, multilock.ErrHeld) && (only == "" || wanted.Name == only) {
						return granted{record: wanted}, nil
					}
					return got, err
				}}
			})...)
			texts := []string{"this host acquired the lock", "it found that locks are NOT SAFE here"}
			if only == "" {
				texts = texts[:1] // each may find it
			}
			requireUnsafe(t, all, texts...)
		})
	}
}

// Each host has its own contended lock, as if each saw its own copy for a while. Each turn seems correct, and
// no attempt fails.
func TestJoinWhereEachHasItsOwn(t *testing.T) {
	t.Parallel()
	pace := quickly(2)
	pace.limit = time.Second
	all := gather(t.Context(), pace, bend(t, func(host string, _ multilock.Source) bent {
		return bent{own: func(name string) string {
			if name == joinName {
				return name + "-of-" + host
			}
			return name
		}}
	})...)
	requireUnsafe(t, all, " pid 7: its lock never excluded this host") // the other host may first see it leave
}

// numbered is a lease with wrong fencing tokens; 0 means a source without fencing tokens.
type numbered struct {
	source.Lease
	next func() uint64
}

func (n numbered) Fence(context.Context) (uint64, error) {
	number := n.next()
	if number == 0 {
		return 0, multilock.ErrUnsupported
	}
	return number, nil
}

// numbering returns a source whose leases have these fencing tokens.
func numbering(next func() uint64) bent {
	return bent{tried: func(_ source.Record, got source.Lease, err error) (source.Lease, error) {
		return numbered{got, next}, err
	}}
}

// Two hosts with the same fencing tokens see different files, or held the lock at the same time.
func TestJoinWhereNumbersRepeat(t *testing.T) {
	t.Parallel()
	all := gather(t.Context(), quickly(2), bend(t, func(string, multilock.Source) bent {
		var own uint64
		return numbering(func() uint64 { own++; return own })
	})...)
	for _, a := range all {
		require.Contains(t, a.severities(), "critical join")
		require.Regexp(t, `a turn of this host and one of (alpha|beta) pid 7 had the same fencing token 1:`, a.text())
	}
}

func TestJoinWhereNumbersDoNotGrow(t *testing.T) {
	t.Parallel()
	number := uint64(100)
	hosts := bend(t, func(host string, _ multilock.Source) bent {
		if host == "beta" {
			return bent{}
		}
		return numbering(func() uint64 { number--; return number })
	})
	requireUnsafe(t, gather(t.Context(), quickly(2), hosts...), "fencing tokens of this host do not increase: 98 came after 99", "it found that locks are NOT SAFE here")
}

// The source loses the contended lock while it is held.
func TestJoinWhereLocksGetLost(t *testing.T) {
	t.Parallel()
	all := gather(t.Context(), quickly(2), bend(t, func(_ string, src multilock.Source) bent {
		return bent{tried: func(wanted source.Record, got source.Lease, err error) (source.Lease, error) {
			if err == nil && wanted.Name == joinName {
				_, err = multilock.Break(t.Context(), src, joinName, multilock.BreakOptions{Alive: true})
			}
			return got, err
		}}
	})...)
	requireUnsafe(t, all, "this host lost the lock while it held it")
}

// remembering is a source whose client caches a lock's state from its first inspection, as with an attribute
// cache.
type remembering struct {
	multilock.Source
	self  string
	given map[string]time.Duration // time from the acquisition to the cached heartbeat
}

func (r remembering) Observe(ctx context.Context, name string, policy multilock.StalePolicy) (source.Observer, error) {
	o, err := r.Source.Observe(ctx, name, policy)
	return remembered{o, r}, err
}

type remembered struct {
	source.Observer
	remembering
}

func (o remembered) Look(ctx context.Context) (source.Observation, error) {
	seen, err := o.Observer.Look(ctx)
	if err == nil && seen.State == source.StateHeld && seen.Record.Holder.Host != o.self {
		if _, known := o.given[seen.Record.Token]; !known {
			o.given[seen.Record.Token] = seen.Age - seen.Silence
		}
		seen.Silence = seen.Age - o.given[seen.Record.Token]
	}
	return seen, err
}

// A host that sees heartbeats of the others too late would take over their locks.
func TestJoinWhereHeartbeatsComeLate(t *testing.T) {
	t.Parallel()
	hosts := hostsIn(t, t.TempDir(), "alpha", "beta")
	hosts[1].locks = remembering{hosts[1].locks, "beta", map[string]time.Duration{}}
	pace := quickly(2)
	all := gather(t.Context(), pace, hosts...)
	for _, a := range all {
		require.NoError(t, a.err)
	}
	require.Equal(t, []string{"ok host", "ok join"}, all[0].severities(), all[0].text())
	require.Equal(t, []string{"warning host", "ok join"}, all[1].severities(), all[1].text())
	require.Contains(t, all[1].text(), "its heartbeats arrived up to ")
	require.Contains(t, all[1].text(), "for all locks, or mount without an attribute cache")
	require.GreaterOrEqual(t, all[1].report().Hosts[0].Late, (pace.ttl - 2*pace.ttl/10).Seconds())
}

// private is a source in which some locks are another user's: they can be read, but neither acquired nor
// broken, as in a directory with the sticky bit.
type private struct {
	multilock.Source
	names map[string]bool
}

func (p private) Contend(ctx context.Context, name string, claim source.Claim, policy multilock.StalePolicy) (source.Contender, error) {
	if p.names[name] {
		return nil, &fs.PathError{Op: "rename", Path: name, Err: fs.ErrPermission}
	}
	return p.Source.Contend(ctx, name, claim, policy)
}

func (p private) Observe(ctx context.Context, name string, policy multilock.StalePolicy) (source.Observer, error) {
	o, err := p.Source.Observe(ctx, name, policy)
	if err != nil || !p.names[name] {
		return o, err
	}
	return privateObserver{o, name}, nil
}

type privateObserver struct {
	source.Observer
	name string
}

func (o privateObserver) Break(context.Context) error {
	return &fs.PathError{Op: "unlink", Path: o.name, Err: fs.ErrPermission}
}

// The presence lock of another user's dead participant remains, because only its owner may remove it. The
// test uses other numbers.
func TestJoinBesideADeadUsersLock(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(2)
	dead := hostIn(t, base, "omega")
	deadIn(t, dead, 100*time.Millisecond, named.lockName(1, presence))
	require.Eventually(t, func() bool {
		seen, err := multilock.Inspect(t.Context(), dead.locks, named.lockName(1, presence), multilock.StalePolicy{})
		return err == nil && seen.State != multilock.StateHeld
	}, watchdog, poll)
	hosts := hostsIn(t, base, "alpha", "beta")
	for _, src := range hosts {
		src.locks = private{src.locks, map[string]bool{named.lockName(1, presence): true}}
	}
	for _, a := range gather(t.Context(), pace, hosts...) {
		require.NoError(t, a.err)
		require.NotEqual(t, 1, a.number)
		require.Equal(t, "ok join", a.severities()[len(a.severities())-1], a.text())
	}
	require.Equal(t, []string{named.lockName(1, presence)}, namesIn(t, filepath.Join(base, ".locks")), "all else is tidied up")
}

// A missing permission is an error, and not a held presence lock.
func TestJoinWhereNothingMayBeTaken(t *testing.T) {
	t.Parallel()
	src := hostIn(t, t.TempDir(), "alpha")
	names := map[string]bool{}
	h, _ := quickly(2).on(src)
	for n := range h.slots() {
		names[h.lockName(n+1, presence)] = true
	}
	h.Locks = private{src.locks, names}
	require.ErrorIs(t, h.run(t.Context()), fs.ErrPermission)
}

// A host may compare fencing tokens after it has published its account: its last mark passes the result to
// the others.
func TestJoinPassesOnWhatItLearnsLast(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	src := hostIn(t, base, "alpha")
	h, _ := quickly(2).on(src)
	h.number, h.Turns, h.Fences = 1, 1, []uint64{7}
	h.peers = []*peer{{Host: Host{Account: Account{Turns: 1, Fences: []uint64{7}}}}}
	require.NoError(t, h.mark(t.Context(), markTold))
	h.compareFences()
	require.NoError(t, h.mark(t.Context(), markRead))
	defer h.leave()
	told := func(mark string) bool {
		seen, err := multilock.Inspect(t.Context(), src.locks, named.lockName(1, mark), multilock.StalePolicy{})
		require.NoError(t, err)
		_, harm, ok := parseAccount(seen.Record.Holder.Command, joinCommand)
		require.True(t, ok)
		return harm
	}
	require.False(t, told(markTold))
	require.True(t, told(markRead))
}
