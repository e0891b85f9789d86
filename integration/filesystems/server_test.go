package filesystems_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var durationFlag = flag.Duration("duration", 0, "campaign: for how long (default 20s; with -test.short none)")

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"worker": playWorker})
	os.Exit(m.Run())
}

// withServer is mounted for tests that make the server fail, in the machine of scripts/lab-machine.
func withServer(t *testing.T) (v assessment, bases []string, server func(order ...string)) {
	t.Helper()
	v, mounts := mounted(t)
	tool := os.Getenv("MULTILOCK_SERVER")
	if tool == "" || v.refused != "" {
		t.Skip("no server that can be made to fail, or locks are refused there")
	}
	if v.oneMount {
		mounts = mounts[:1]
	}
	return v, place(t, mounts), func(order ...string) {
		out, err := exec.Command(tool, append([]string{"server"}, order...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// hold acquires a lock that is free or becomes free.
func hold(t *testing.T, base string, ttl time.Duration) *multilock.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lock, err := multilock.Acquire(ctx, fslocktest.Open(t, fslock.Options{Base: base}), "lock", multilock.Options{TTL: ttl})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

// A lock that was held before the server was killed and restarted is still held after that, and can
// be released.
func TestServerRestart(t *testing.T) {
	_, bases, server := withServer(t)
	lock := hold(t, bases[0], time.Minute)
	server("restart")
	require.NoError(t, lock.Verify(t.Context()))
	_, err := multilock.TryAcquire(t.Context(), fslocktest.Open(t, fslock.Options{Base: bases[len(bases)-1]}), "lock", multilock.Options{})
	var held *multilock.HeldError
	require.ErrorAs(t, err, &held)
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, hold(t, bases[len(bases)-1], time.Minute).Release(t.Context()))
}

// A holder that loses its connection reports the lock as lost before another host acquires it.
func TestCutConnection(t *testing.T) {
	_, bases, server := withServer(t)
	lock := hold(t, bases[0], 5*time.Second)
	server("cut", "a")
	healed := false
	heal := func() {
		if !healed {
			server("heal", "a")
			healed = true
		}
	}
	defer heal()
	select {
	case <-lock.Context().Done():
	case <-time.After(time.Minute):
		require.Fail(t, "the holder still trusts its lock")
	}
	if len(bases) > 1 {
		require.NoError(t, hold(t, bases[1], time.Minute).Release(t.Context()))
	}
	heal()
	require.Eventually(t, func() bool { _, err := os.Stat(bases[0]); return err == nil }, 2*time.Minute, 100*time.Millisecond)
	require.Error(t, lock.Release(t.Context()))
	require.NoError(t, hold(t, bases[0], time.Minute).Release(t.Context()))
}

// Measures an acquire and release cycle in known directories, on filesystems whose client counts
// its requests.
func TestCostOfACycle(t *testing.T) {
	_, bases, _ := withServer(t)
	src := fslocktest.Open(t, fslock.Options{Base: bases[0]})
	cycles := func(times int) {
		for range times {
			lock, err := multilock.TryAcquire(t.Context(), src, "lock", multilock.Options{TTL: time.Hour})
			require.NoError(t, err)
			require.NoError(t, lock.Release(t.Context()))
		}
	}
	const times = 10
	cycles(3)
	before := requests(t)
	cycles(times)
	perCycle := float64(requests(t)-before) / times
	t.Logf("%.1f requests for a cycle", perCycle)
	require.Less(t, perCycle, 50.0) // a re-exported NFS counts the requests of both mounts
	require.Greater(t, perCycle, 5.0)
}

// requests is the number of requests sent by all mounts of this machine.
func requests(t *testing.T) (sent int) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountstats")
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^\s+[A-Z_]+: (\d+) `).FindAllStringSubmatch(string(mounts), -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		sent += n
	}
	cifs, err := os.ReadFile("/proc/fs/cifs/Stats")
	if errors.Is(err, fs.ErrNotExist) {
		return sent
	}
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^SMBs: (\d+)`).FindAllStringSubmatch(string(cifs), -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		sent += n
	}
	return sent
}

// Processes on both hosts acquire one lock in turn, while they are killed and stopped, the server
// is killed, and connections are cut.
func TestCampaign(t *testing.T) {
	_, bases, server := withServer(t)
	lasts := *durationFlag
	switch {
	case lasts == 0 && testing.Short():
		t.Skip("takes long")
	case lasts == 0:
		lasts = 20 * time.Second
	}
	restarts, cuts := 0, 0
	crew := worker.Crew{TB: t, Place: strings.Join(bases, ":"), TTL: campaignTTL, Lasts: lasts}
	crew.Disturb = func() {
		if rand.IntN(3) == 0 {
			restarts++
			server("restart")
			return
		}
		cuts++
		of := []string{"a", "b"}[rand.IntN(len(bases))]
		server("cut", of)
		time.Sleep(rand.N(2 * campaignTTL))
		server("heal", of)
	}
	crew.Work(4, 5)
	crew.Judge(fslocktest.Open(t, fslock.Options{Base: bases[0]}))
	t.Logf("%d restarts of the server, %d cut connections", restarts, cuts)
}

const campaignTTL = 5 * time.Second

// playWorker uses the other mount if it represents a process on another host. It retries until the
// server is up.
func playWorker() error {
	return worker.Play(func(place string, self process.Identity) (source.Source, error) {
		bases := strings.Split(place, ":")
		here, err := process.Self()
		if err != nil {
			return nil, err
		}
		opt := fslock.Options{Base: bases[0]}
		if len(bases) > 1 && self.Host != here.Host {
			opt = fslock.Options{Base: bases[1], Self: self}
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			src, err := fslock.Open(opt)
			if err == nil || time.Now().After(end) {
				return src, err
			}
		}
	})
}
