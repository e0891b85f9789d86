package cooklock_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// short is a period for tests that wait for it by real clocks.
const short = 400 * time.Millisecond

// oneShot tries once, like a process that cron starts and that does not wait.
func oneShot(t testing.TB, c *cell, notes string, length time.Duration) (*multilock.Lock, error) {
	t.Helper()
	return try(t, c.chef(t, cooklock.Options{Period: length, Notes: notes, Place: "here"}))
}

// Commands that never wait acquire the lock, because each continues the watch of the previous one
// on its host. Without notes none would ever acquire it.
func TestNextProcessGoesOnWatching(t *testing.T) {
	c, notes := newCell(), filepath.Join(t.TempDir(), "notes")
	for turns := 0; turns < 3; {
		lock, err := oneShot(t, c, notes, short)
		if err == nil {
			require.NoError(t, lock.Verify(t.Context()))
			turns++
			continue
		}
		require.ErrorIs(t, err, source.ErrHeld)
	}
	require.Equal(t, 3, c.swaps(), "nobody swapped in vain")
	info, err := os.Stat(notes)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// noted returns a note according to which the value was seen long ago, and its file.
func noted(t *testing.T, c *cell, notes string, length time.Duration) (path string, fields map[string]any) {
	t.Helper()
	_, err := oneShot(t, c, notes, length)
	require.ErrorIs(t, err, source.ErrHeld)
	found, err := filepath.Glob(filepath.Join(notes, "cook-*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	data, err := os.ReadFile(found[0])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &fields))
	fields["awake_ns"] = 1
	return found[0], fields
}

func rewrite(t *testing.T, path string, fields map[string]any) {
	t.Helper()
	data, err := json.Marshal(fields)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// The other tests each change one thing about this note.
func TestNoteFromThisBootCounts(t *testing.T) {
	c, notes := newCell(), filepath.Join(t.TempDir(), "notes")
	must(t, c.chef(t, cooklock.Options{Period: awake(t)}))
	path, fields := noted(t, c, notes, awake(t))
	rewrite(t, path, fields)
	_, err := oneShot(t, c, notes, awake(t))
	require.NoError(t, err)
}

// awake is half of the uptime of this machine, so that an older note is possible.
func awake(t *testing.T) time.Duration {
	t.Helper()
	up, ok := boottime.AwakeSinceBoot()
	require.True(t, ok)
	return min(up/2, time.Hour).Truncate(time.Minute)
}

// A note that is not certainly from this boot, and from this user, is ignored.
func TestStrangeNotesDoNotCount(t *testing.T) {
	strange := map[string]func(t *testing.T, path string, fields map[string]any){
		"another boot":      func(_ *testing.T, _ string, f map[string]any) { f["boot"] = "another" },
		"no boot":           func(_ *testing.T, _ string, f map[string]any) { delete(f, "boot") },
		"another namespace": func(_ *testing.T, _ string, f map[string]any) { f["namespace"] = "another" },
		"another clock":     func(_ *testing.T, _ string, f map[string]any) { f["clock"] = "another" },
		"the future":        func(_ *testing.T, _ string, f map[string]any) { f["awake_ns"] = int64(1) << 62 },
		"no time":           func(_ *testing.T, _ string, f map[string]any) { delete(f, "awake_ns") },
		"a negative time":   func(_ *testing.T, _ string, f map[string]any) { f["awake_ns"] = -5 },
		"another value":     func(_ *testing.T, _ string, f map[string]any) { f["value"] = []byte("x") },
		"no value":          func(_ *testing.T, _ string, f map[string]any) { delete(f, "value") },
	}
	for name, change := range strange {
		t.Run(name, func(t *testing.T) {
			c, notes := longHeld(t)
			path, fields := noted(t, c, notes, awake(t))
			change(t, path, fields)
			rewrite(t, path, fields)
			_, err := oneShot(t, c, notes, awake(t))
			require.ErrorIs(t, err, source.ErrHeld)
		})
	}
	t.Run("torn", func(t *testing.T) {
		c, notes := longHeld(t)
		path, _ := noted(t, c, notes, awake(t))
		require.NoError(t, os.WriteFile(path, []byte(`{"boot":`), 0o600))
		_, err := oneShot(t, c, notes, awake(t))
		require.ErrorIs(t, err, source.ErrHeld)
	})
}

func longHeld(t *testing.T) (c *cell, notes string) {
	t.Helper()
	c = newCell()
	must(t, c.chef(t, cooklock.Options{Period: awake(t)}))
	return c, filepath.Join(t.TempDir(), "notes")
}

// If other users can write to the directory, its notes are ignored, none are written, and the
// message shows that retrying will not help.
func TestNotesOfAnybody(t *testing.T) {
	c, notes := longHeld(t)
	path, fields := noted(t, c, notes, awake(t))
	rewrite(t, path, fields)
	require.NoError(t, os.Chmod(notes, 0o777))
	_, err := oneShot(t, c, notes, awake(t))
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorContains(t, err, "no other user can write to")
}

func TestNotesCannotBeWritten(t *testing.T) {
	c, notes := longHeld(t)
	require.NoError(t, os.WriteFile(notes, nil, 0o600))
	_, err := oneShot(t, c, notes, awake(t))
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorContains(t, err, "this process has to wait")
}

// Locks with the same name in two locations are different.
func TestNotesOfPlaces(t *testing.T) {
	c, notes := longHeld(t)
	path, fields := noted(t, c, notes, awake(t))
	rewrite(t, path, fields)
	elsewhere := c.chef(t, cooklock.Options{Period: awake(t), Notes: notes, Place: "there"})
	_, err := try(t, elsewhere)
	require.ErrorIs(t, err, source.ErrHeld)
	require.Len(t, entries(t, notes), 2)
}

func TestIdentityWithoutABootKeepsNoNotes(t *testing.T) {
	c, notes := longHeld(t)
	src := c.chef(t, cooklock.Options{Period: awake(t), Notes: notes, Self: process.Identity{Host: "h", PID: 1}})
	_, err := try(t, src)
	require.ErrorContains(t, err, "no clock that all processes share")
	require.NoDirExists(t, notes)
}
