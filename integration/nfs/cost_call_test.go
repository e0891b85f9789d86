package nfs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// Where the requests of a cycle come from, call by call. The steps that decide
// something have to ask the server, with nothing cached in the way.
func TestCostOfEachCall(t *testing.T) {
	asked := map[string][]string{"4.2": {"RENAME", "LOOKUP", "REMOVE", "REMOVE"}, "4.1": {"RENAME", "LOOKUP", "REMOVE", "REMOVE"}, "3": {"RENAME", "LOOKUP", "REMOVE", "RMDIR"}}
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		l := &ledger{t: t, h: h}
		src := newPlace(t).sourceThrough(t, h, faultfs.New(h, l.note))
		for range 3 {
			l.clear()
			lock, err := multilock.TryAcquire(context.Background(), src, "job", multilock.Options{TTL: long})
			require.NoError(t, err)
			require.NoError(t, lock.Release(context.Background()))
		}
		t.Logf("v%s\n%s", h.version, l)
		for i, call := range []string{"rename .multilock/staging/", "handle .locks/job/job.locked", "unlink .locks/job/job.locked", "rmdir .locks/job"} {
			require.Equal(t, 1, l.during(call)[asked[h.version][i]], "%s", call)
		}
	})
}

// ledger writes down which requests each call of the lock causes. The CLOSE of v4
// is sent behind the caller's back, and may show up a call later.
type ledger struct {
	t     *testing.T
	h     host
	last  requests
	calls []string
	spent []requests
}

func (l *ledger) clear() { l.last, l.calls, l.spent = l.h.requests(l.t), nil, nil }

// note is a faultfs.Injector that injects nothing.
func (l *ledger) note(op faultfs.Op) error {
	if op.Phase == faultfs.After {
		now := l.h.requests(l.t)
		l.calls = append(l.calls, op.Kind+" "+op.Path)
		l.spent = append(l.spent, now.since(l.last))
		l.last = now
	}
	return nil
}

// during is what the call that begins like this has caused.
func (l *ledger) during(call string) requests {
	for i, made := range l.calls {
		if strings.HasPrefix(made, call) {
			return l.spent[i]
		}
	}
	return nil
}

func (l *ledger) String() string {
	var text strings.Builder
	for i, call := range l.calls {
		fmt.Fprintf(&text, "%-65s %s\n", call, l.spent[i])
	}
	return text.String()
}
