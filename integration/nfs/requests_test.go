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
type requests map[string]float64

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
			n, err := strconv.Atoi(fields[1])
			require.NoError(t, err)
			counted[strings.TrimSuffix(fields[0], ":")] = float64(n)
		}
	}
	delete(counted, "SEQUENCE")
	delete(counted, "RENEW")
	require.NotEmpty(t, counted)
	return counted
}

// cost is what one call of f costs a host, on the average over n calls after a few
// that fill the caches. The average is right also for requests that the client
// sends a little later, like the CLOSE of v4.
func (h host) cost(t testing.TB, n int, f func()) requests {
	t.Helper()
	const first = 3
	for range first {
		f()
	}
	before := h.requests(t)
	for range n {
		f()
	}
	spent := requests{}
	for op, count := range h.requests(t) {
		if more := (count - before[op]) / float64(n); more > 0 {
			spent[op] = more
		}
	}
	return spent
}

func (r requests) total() float64 {
	sum := 0.0
	for _, n := range r {
		sum += n
	}
	return sum
}

// String is the total, and the kinds from the most frequent to the rarest.
func (r requests) String() string {
	ops := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		if r[a] != r[b] {
			return int(100 * (r[b] - r[a]))
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, op := range ops {
		parts = append(parts, op+" "+number(r[op]))
	}
	return fmt.Sprintf("%s: %s", number(r.total()), strings.Join(parts, ", "))
}

// number is a count, with one digit behind the point if it is no whole one.
func number(n float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
}
