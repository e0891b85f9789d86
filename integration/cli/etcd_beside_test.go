package cli_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
)

// TestBesideEtcdctl runs a command under a lock with multilock and with etcd's own tool in turns, and
// then kills a holder while another process waits. It measures the requests and the time that this
// takes.
func TestBesideEtcdctl(t *testing.T) {
	etcdctl, err := exec.LookPath("etcdctl")
	if err != nil {
		t.Skip("needs etcdctl, from Debian's etcd-client")
	}
	c := etcdlab.Start(t, 3)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	s := newStation(t, "MULTILOCK_SOURCE=etcd://"+proxy.Address+"/locks")
	etcd := func(args ...string) *exec.Cmd {
		cmd := exec.Command(etcdctl, append([]string{"--endpoints", proxy.Address, "lock"}, args...)...) //nolint:gosec // as found
		cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
		return cmd
	}
	ways := map[string]func(ttl string, job ...string) *exec.Cmd{
		"multilock": func(ttl string, job ...string) *exec.Cmd {
			return s.command(slices.Concat([]string{"run", "-q", "-n", "beside", "--ttl", ttl, "--wait", "1m", "--"}, job)...)
		},
		"etcdctl": func(ttl string, job ...string) *exec.Cmd {
			return etcd(slices.Concat([]string{"--ttl", strings.TrimSuffix(ttl, "s"), "beside"}, job)...)
		},
	}
	took, asked := map[string][]time.Duration{}, map[string]etcdlab.Counts{}
	for range 20 {
		for name, way := range ways {
			before, start := proxy.Counts(), time.Now()
			require.NoError(t, way("10s", "true").Run(), name)
			took[name] = append(took[name], time.Since(start))
			if spent := proxy.Counts().Since(before); asked[name] == nil || spent.All() < asked[name].All() {
				asked[name] = spent // on a busy machine a slow command looks once more
			}
		}
	}
	for name, times := range took {
		slices.Sort(times)
		t.Logf("%s: %s for a command, with %v", name, times[len(times)/2].Round(100*time.Microsecond), asked[name])
	}
	require.LessOrEqual(t, asked["multilock"].All(), 5)
	for name, way := range ways {
		holder := way("10s", "sleep", "60")
		require.NoError(t, holder.Start())
		require.Eventually(t, func() bool { return c.Count(t, "beside/")+c.Count(t, "locks/lock/") == 1 }, watchdog, poll)
		require.NoError(t, holder.Process.Kill())
		_ = holder.Wait()
		start := time.Now()
		require.NoError(t, way("10s", "true").Run(), name)
		t.Logf("%s: %s to take over the lock of a killed holder on the same host, with a TTL of 10s", name, time.Since(start).Round(100*time.Millisecond))
	}
}
