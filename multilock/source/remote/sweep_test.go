package remote_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// outcome is the outcome of a transaction.
type outcome int

const (
	dropped  outcome = iota // not carried out, not answered
	lost                    // carried out, not answered
	late                    // carried out later, after the caller has given up
	repeated                // carried out twice; the second one is answered
)

// lossy is a store whose n-th transaction has another outcome.
type lossy struct {
	*Store
	what   outcome
	n, i   int
	struck bool
	strike bool
	later  []remote.Txn
}

func (l *lossy) Apply(ctx context.Context, t remote.Txn) (remote.Applied, error) {
	if l.strike {
		l.i++
	}
	if !l.strike || l.i != l.n+1 {
		return l.Store.Apply(ctx, t)
	}
	l.struck = true
	switch l.what {
	case lost:
		_, _ = l.Store.Apply(ctx, t)
	case late:
		l.later = append(l.later, t)
	case repeated:
		_, _ = l.Store.Apply(ctx, t)
		a, err := l.Store.Apply(ctx, t)
		a.Doubt = true
		return a, err
	case dropped:
	}
	return remote.Applied{Doubt: true}, errNoAnswer
}

// land carries out the delayed transactions, except attempts, whose pulse has ended.
func (l *lossy) land() {
	for _, t := range l.later {
		if !slices.ContainsFunc(t.Then, func(w remote.Write) bool { return w.Pulse != nil }) {
			_, _ = l.Store.Apply(context.Background(), t)
		}
	}
	l.later = nil
}

// Pulse returns a pulse whose heartbeats are affected, too.
func (l *lossy) Pulse(context.Context, time.Duration) remote.Pulse {
	return &remote.Beats{Store: l, Wait: l.wait}
}

// TestSweep tries every outcome for every request of each operation. The reported result must agree
// with the store's content afterwards.
func TestSweep(t *testing.T) {
	t.Parallel()
	operations := locktest.Operations("first acquire", "acquire", "be refused", "renew", "release", "break", "force", "take over", "commit", "commit again", "forget",
		"mark the job", "fence", "learn the outcome", "publish", "retract", "record", "read")
	operations = append(operations, locktest.Swapping(func(b *locktest.Bench) source.Register {
		register, err := b.Struck.(source.Registrar).Register("cell")
		require.NoError(b, err)
		return register
	}))
	for name, what := range map[string]outcome{"dropped": dropped, "lost": lost, "late": late, "repeated": repeated} {
		for _, op := range operations {
			t.Run(op.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				op.Sweep(t, func(n int) *locktest.Bench { return bench(t, what, n) })
			})
		}
	}
}

func bench(t testing.TB, what outcome, n int) *locktest.Bench {
	l := &lossy{Store: newStore(), what: what, n: n}
	self, err := process.Self()
	require.NoError(t, err)
	self.Start++ // no such process
	claim := source.Claim{TTL: time.Hour, Heartbeat: time.Minute}
	dead := claim
	dead.Holder.Identity = self
	return &locktest.Bench{
		TB: t, Name: "nightly", Claim: claim, Dead: dead, Struck: open(t, l), Other: open(t, l.Store), Hidden: what == repeated,
		Strike: func() { l.strike = true },
		Calm: func() bool {
			l.strike = false
			return l.struck
		},
		Land:  l.land,
		Taken: func(string) {},
		Token: func() string {
			var record struct{ Token string }
			if e, there := l.entries["root/lock/night/nightly"]; there {
				require.NoError(t, json.Unmarshal(e.Value, &record))
			}
			return record.Token
		},
		Gone: func() {
			for key := range l.entries {
				require.False(t, strings.HasPrefix(key, "root/wait/"), key)
			}
		},
	}
}
