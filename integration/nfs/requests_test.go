package nfs_test

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requests are how many requests of each kind a host has sent.
type requests map[string]int

// requests reads the mount's counters: every request once, however often it was
// transmitted (the per-op statistics of /proc/self/mountstats, see
// net/sunrpc/stats.c). What a v4 client sends by the clock, to keep its lease, is
// left out.
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

// spends is what f costs a host.
func (h host) spends(t testing.TB, f func()) requests {
	t.Helper()
	before := h.requests(t)
	f()
	return h.requests(t).since(before)
}

// cost is what f costs a host when the caches are filled: for each kind of request
// the median of n calls. That leaves out what the client asks by the clock, when
// attributes have been cached for long enough, and is right also for requests
// that it sends a little later, like the CLOSE of v4.
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

// since is what was sent after an earlier count.
func (r requests) since(before requests) requests {
	spent := requests{}
	for op, count := range r {
		if count > before[op] {
			spent[op] = count - before[op]
		}
	}
	return spent
}

// total leaves the return of delegations out. A v4 server hands one out with a
// file that is opened for reading, unless it has not quite closed yet what it was
// written through: the lock can neither ask for that nor keep it from happening.
func (r requests) total() int {
	sum := 0
	for op, n := range r {
		if op != "DELEGRETURN" {
			sum += n
		}
	}
	return sum
}

// String is the kinds, from the most frequent to the rarest.
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
