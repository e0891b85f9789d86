//go:build unix

package cooklock

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Notes are in a directory where no other user can take their name first, if there is one.
func TestPlaceOfNotes(t *testing.T) {
	runtime, run, temporary := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	for _, dir := range []string{runtime, run} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.Equal(t, filepath.Join(runtime, "multilock"), defaultNotes(run))
	require.NoError(t, os.Chmod(runtime, 0o777|fs.ModeSticky))
	want := temporary
	if os.Geteuid() == 0 {
		want = run
	}
	require.Equal(t, want, filepath.Dir(defaultNotes(run)), "others can write to the first one")
	t.Setenv("XDG_RUNTIME_DIR", "")
	require.Equal(t, want, filepath.Dir(defaultNotes(run)))
	require.NoError(t, os.Chmod(run, 0o777))
	require.Equal(t, temporary, filepath.Dir(defaultNotes(run)))
}
