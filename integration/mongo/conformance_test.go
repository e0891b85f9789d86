package mongo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

func TestConformance(t *testing.T) {
	locktest.Run(t, fixture(mongolab.Options{}, ""))
}

func TestConformanceInAGroup(t *testing.T) {
	locktest.Run(t, fixture(mongolab.Options{}, "nightly jobs"))
}

// As the primary of a replica set the server has drivers repeat writes by
// themselves, and sources ask for linearizable reads.
func TestConformanceInAReplicaSet(t *testing.T) {
	locktest.Run(t, fixture(mongolab.Options{ReplicaSet: true}, ""))
}

// A server at a real distance takes a second for each command. With -short it takes less.
func TestConformanceFarAway(t *testing.T) {
	opt := mongolab.Options{Latency: time.Second}
	if testing.Short() {
		opt.Latency = 300 * time.Millisecond
	}
	f := fixture(opt, "")
	f.TTL, f.Distant = 20*opt.Latency, true
	locktest.Run(t, f)
}

func fixture(opt mongolab.Options, group string) locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "$set", "a.b", "null", strings.Repeat("\u20ac", 166)},
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
		Place: func(t testing.TB) func() multilock.Source {
			l := newLab(t, opt)
			c := l.collection()
			return func() multilock.Source { return l.open(c, group) }
		},
	}
}
