package nfs_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

func TestZZ(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		for _, opt := range []struct {
			n        int
			rounds   int
			together bool
		}{{1, 40, false}, {4, 10, false}, {12, 12, true}} {
			p := newPlace(t)
			before := raw(t, h)
			start := time.Now()
			var wg sync.WaitGroup
			src := p.source(t, h)
			for i := range opt.n {
				if i%3 == 0 && opt.together {
					src = p.source(t, h)
				}
				s := src
				wg.Go(func() {
					for range opt.rounds {
						l, err := multilock.Acquire(within(t), s, "job", multilock.Options{})
						require.NoError(t, err)
						require.NoError(t, l.Release(context.Background()))
					}
				})
			}
			wg.Wait()
			d := time.Since(start)
			t.Logf("%d x %d: %s per cycle", opt.n, opt.rounds, d/time.Duration(opt.n*opt.rounds))
			after := raw(t, h)
			for k, v := range after {
				if v[0] != before[k][0] {
					t.Logf("   %s: ops %d trans %d rtt %d exec %d err %d", k, v[0]-before[k][0], v[1]-before[k][1], v[6]-before[k][6], v[7]-before[k][7], v[8]-before[k][8])
				}
			}
		}
	})
}

func raw(t *testing.T, h host) map[string][]int {
	pid, _ := h.state("pid")
	text, err := os.ReadFile("/proc/" + pid + "/mountstats")
	require.NoError(t, err)
	out := map[string][]int{}
	mine := false
	for _, l := range strings.Split(string(text), "\n") {
		f := strings.Fields(l)
		if len(f) > 4 && f[0] == "device" {
			mine = f[4] == h.mount
		}
		if mine && len(f) == 10 && strings.HasSuffix(f[0], ":") {
			var v []int
			for _, x := range f[1:] {
				n := 0
				for _, c := range x {
					n = n*10 + int(c-'0')
				}
				v = append(v, n)
			}
			out[f[0]] = v
		}
	}
	return out
}
