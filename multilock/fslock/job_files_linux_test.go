package fslock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A job's files in the directory of its lock do not block the lock: they are moved aside, unchanged, with a
// warning.
// Rule: orphan
func TestReleaseMovesTheJobsFilesAside(t *testing.T) {
	t.Parallel()
	for name, fs := range map[string]func(*fslock.Options){
		"local":  func(*fslock.Options) {},
		"shared": func(opt *fslock.Options) { opt.FS = sharedFS() },
	} {
		for how, free := range map[string]func(src *fslock.Source, lock *multilock.Lock) error{
			"release": func(_ *fslock.Source, lock *multilock.Lock) error { return lock.Release(t.Context()) },
			"break": func(src *fslock.Source, _ *multilock.Lock) error {
				_, err := multilock.Break(t.Context(), src, "x", multilock.BreakOptions{Alive: true})
				return err
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				base := t.TempDir()
				var said []string
				opt := fslock.Options{Base: base, Warn: func(text string) { said = append(said, text) }}
				fs(&opt)
				src := open(t, opt)
				lock, err := multilock.TryAcquire(t.Context(), src, "x", multilock.Options{})
				require.NoError(t, err)
				dir := filepath.Join(base, fslock.DefaultGroup, "x")
				require.NoError(t, os.WriteFile(filepath.Join(dir, "job.log"), []byte("precious"), 0o600))
				require.NoError(t, os.Mkdir(filepath.Join(dir, "results"), 0o700))
				require.NoError(t, free(src, lock))

				found, err := filepath.Glob(filepath.Join(base, ".multilock", "staging", ".found-*", "job.log"))
				require.NoError(t, err)
				require.Len(t, found, 1)
				text, err := os.ReadFile(found[0])
				require.NoError(t, err)
				require.Equal(t, "precious", string(text))
				require.DirExists(t, filepath.Join(filepath.Dir(found[0]), "results"))
				require.Len(t, said, 1)
				require.Contains(t, said[0], filepath.Dir(found[0]))
				require.Contains(t, said[0], "job.log")
				next, err := multilock.TryAcquire(t.Context(), src, "x", multilock.Options{})
				require.NoError(t, err)
				require.NoError(t, next.Release(t.Context()))
				require.Len(t, said, 1)
			})
		}
	}
}
