package fslock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// A user who can write to a directory can fill it: a reader only keeps in memory what it needs of it.
// Rule: none (docs/security.md)
func TestCrowdedDirectoriesTakeLittleMemory(t *testing.T) {
	src := open(t, fslock.Options{Base: inMemory(t)})
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "ours")))
	emptyDirectory(t, src.Base(), "x")
	staging := filepath.Join(src.Base(), ".multilock", "staging")
	at := filepath.Join(staging, "crowd")
	require.NoError(t, os.MkdirAll(at, 0o755))
	for i := range 200_000 {
		require.NoError(t, os.WriteFile(filepath.Join(at, fmt.Sprintf("%0240d", i)), nil, 0o600))
	}
	for _, c := range []struct {
		place string
		do    func()
	}{
		{filepath.Join(src.Base(), fslock.DefaultGroup, "x"), func() {
			require.Equal(t, source.StateHeld, look(t, observe(t, src, "x", source.StalePolicy{})).State)
		}},
		{filepath.Join(staging, source.NewToken()), func() {
			found, err := src.Sweep(t.Context())
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.True(t, found[0].Strange)
		}},
		{historyDir(src.Base()), func() {
			names, left := told(t, src)
			require.Empty(t, names)
			require.Empty(t, left)
			names, left = followed(t, src.Follow(time.Time{}))
			require.Empty(t, names)
			require.Empty(t, left)
			expired, err := src.Expired(t.Context(), 0)
			require.NoError(t, err)
			require.Empty(t, expired)
		}},
		{filepath.Join(staging, "crowd"), func() { src.Examine(t.Context()) }},
	} {
		aside := c.place + ".aside"
		_ = os.Rename(c.place, aside)
		require.NoError(t, os.Rename(at, c.place))
		at = c.place
		assert.Less(t, peak(t, c.do), 32<<20, "of 50 MiB: %s", c.place)
	}
}

// inMemory is an empty base directory on a fast filesystem, if there is one.
func inMemory(t *testing.T) string {
	t.Helper()
	if base, err := os.MkdirTemp("/dev/shm", "multilock-scene-"); err == nil {
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
		return base
	}
	return fresh(t)
}

// peak is by how many bytes the process grows during do.
func peak(t *testing.T, do func()) int {
	t.Helper()
	debug.FreeOSMemory()
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // resets the peak (proc(5))
	before := resident(t, "VmRSS")
	do()
	return resident(t, "VmHWM") - before
}

func resident(t *testing.T, line string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	found := regexp.MustCompile(line + `:\s+(\d+) kB`).FindStringSubmatch(strings.TrimSpace(string(status)))
	require.NotNil(t, found)
	kB, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return kB << 10
}
