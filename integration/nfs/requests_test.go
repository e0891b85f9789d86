package nfs_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// requests counts the requests that a host has sent, by kind.
type requests map[string]int

// requests reads the mount's per-op statistics in /proc/self/mountstats, which count every request
// once, however often it was transmitted (see net/sunrpc/stats.c). Requests that a v4 client sends
// periodically to keep its lease are left out.
func (h host) requests(t testing.TB) requests {
	t.Helper()
	pid, err := h.state("pid")
	require.NoError(t, err)
	f, err := os.Open(filepath.Join("/proc", pid, "mountstats"))
	require.NoError(t, err)
	defer f.Close()
	counted := requests{}
	mine, counting := false, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 4 && fields[0] == "device":
			mine, counting = fields[4] == h.mount, false
		case mine && len(fields) > 0 && fields[0] == "per-op":
			counting = true
		case mine && counting && len(fields) > 1:
			counted[strings.TrimSuffix(fields[0], ":")], err = strconv.Atoi(fields[1])
			require.NoError(t, err)
		}
	}
	delete(counted, "SEQUENCE")
	delete(counted, "RENEW")
	require.NotEmpty(t, counted)
	return counted
}

// spends returns the requests that f costs a host.
func (h host) spends(t testing.TB, f func()) requests {
	t.Helper()
	before := h.requests(t)
	f()
	return h.requests(t).since(before)
}

// cost returns what f costs a host with warm caches: for each kind of request, the median of n
// calls. The median excludes requests that a client sends when cached attributes expire, and
// includes those that it sends a little late, such as the CLOSE of v4.
func (h host) cost(t testing.TB, n int, f func()) requests {
	t.Helper()
	const first = 3
	for range first {
		f()
	}
	spent := map[string][]int{}
	for i := range n {
		for op, count := range h.spends(t, f) {
			if spent[op] == nil {
				spent[op] = make([]int, n)
			}
			spent[op][i] = count
		}
	}
	middle := requests{}
	for op, counts := range spent {
		slices.Sort(counts)
		middle[op] = counts[n/2]
	}
	return middle
}

// since returns the requests sent after an earlier count.
func (r requests) since(before requests) requests {
	spent := requests{}
	for op, count := range r {
		if count > before[op] {
			spent[op] = count - before[op]
		}
	}
	return spent
}

// total leaves out DELEGRETURN. A v4 server grants a delegation with a file opened for reading
// unless the open that wrote the file is not completely closed yet. The lock can neither request
// nor prevent that.
func (r requests) total() int {
	sum := 0
	for op, n := range r {
		if op != "DELEGRETURN" {
			sum += n
		}
	}
	return sum
}

// String lists the kinds, most frequent first.
func (r requests) String() string {
	ops := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, op := range ops {
		if r[op] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", op, r[op]))
		}
	}
	return strings.Join(parts, ", ")
}

// Breaks down the requests of an acquire and release cycle by call. The steps that decide something
// must reach the server, whatever is cached.
// Rule: calls
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

// ledger records which requests each call of the lock causes. The CLOSE of v4 is sent
// asynchronously and may be counted for the next call.
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

// during returns the requests caused by the first call with this prefix.
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
