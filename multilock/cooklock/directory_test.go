package cooklock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

func register(t testing.TB, base, name string) cooklock.Register {
	t.Helper()
	dir, err := cooklock.OpenDirectory(cooklock.DirectoryOptions{Base: base})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	r, err := dir.Register(name)
	require.NoError(t, err)
	return r
}

func requirePeek(t testing.TB, r cooklock.Register, want string, number uint64) {
	t.Helper()
	v, n, err := r.Peek(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, string(v))
	require.Equal(t, number, n)
}

func TestSwapReturnsWhatWasThere(t *testing.T) {
	base := t.TempDir()
	r := register(t, base, "nightly")
	v, n, err := r.Peek(t.Context())
	require.NoError(t, err)
	require.Nil(t, v)
	require.Zero(t, n)
	require.NoDirExists(t, filepath.Join(base, ".multilock"), "looking leaves no traces")

	for i, old := range []string{"", "a\nb", "x"} {
		value := []string{"a\nb", "x", "\x00\xff"}[i]
		was, n, err := r.Swap(t.Context(), []byte(value))
		require.NoError(t, err)
		require.Equal(t, old, string(was))
		require.Equal(t, i == 0, was == nil)
		require.EqualValues(t, i+1, n)
		requirePeek(t, register(t, base, "nightly"), value, n)
	}
	requireTidy(t, base, "nightly", "3")
}

// requireTidy checks that a register has one epoch, and that nothing is left of
// what was prepared.
func requireTidy(t testing.TB, base, name, epoch string) {
	t.Helper()
	require.Equal(t, []string{epoch}, entries(t, base, ".multilock/cook/groups/.locks", name))
	require.ElementsMatch(t, []string{"value", "live"}, entries(t, base, ".multilock/cook/groups/.locks", name, epoch))
	require.Empty(t, entries(t, base, ".multilock/cook/staging"))
}

func entries(t testing.TB, path ...string) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(path...))
	require.NoError(t, err)
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestRegistersAreIndependent(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"one", "two", ".", "a/b", "", "nul\x00"} {
		dir, err := cooklock.OpenDirectory(cooklock.DirectoryOptions{Base: base})
		require.NoError(t, err)
		r, err := dir.Register(name)
		if len(name) != 3 || strings.Contains(name, "/") {
			require.ErrorIs(t, err, source.ErrInvalid, "%q", name)
			continue
		}
		old, n, err := r.Swap(t.Context(), []byte(name))
		require.NoError(t, err)
		require.Nil(t, old)
		require.EqualValues(t, 1, n)
		require.NoError(t, dir.Close())
	}
	requirePeek(t, register(t, base, "one"), "one", 1)
}

// All swaps of many form one chain: every value is returned once, to the swap with
// the next number.
func TestSwapsFormAChain(t *testing.T) {
	const swappers, swaps = 4, 25
	base := t.TempDir()
	type link struct{ old, value string }
	var mu sync.Mutex
	chain := map[uint64]link{}
	var wg sync.WaitGroup
	for i := range swappers {
		r := register(t, base, "nightly")
		wg.Go(func() {
			for j := range swaps {
				value := fmt.Sprintf("%d-%d", i, j)
				old, n, err := r.Swap(t.Context(), []byte(value))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				chain[n] = link{string(old), value}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, chain, swappers*swaps)
	for n, before := uint64(1), ""; n <= swappers*swaps; n++ {
		require.Equal(t, before, chain[n].old)
		before = chain[n].value
	}
	requireTidy(t, base, "nightly", fmt.Sprint(swappers*swaps))
}

func TestSwapRefusesWhatNoRegisterHolds(t *testing.T) {
	r := register(t, t.TempDir(), "nightly")
	for _, v := range [][]byte{nil, {}, make([]byte, cooklock.MaxValue+1)} {
		_, _, err := r.Swap(t.Context(), v)
		require.ErrorIs(t, err, source.ErrInvalid)
	}
	_, _, err := r.Swap(t.Context(), make([]byte, cooklock.MaxValue))
	require.NoError(t, err)
	v, _, err := r.Peek(t.Context())
	require.NoError(t, err)
	require.Len(t, v, cooklock.MaxValue)
}

func TestBaseIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	for _, opt := range []cooklock.DirectoryOptions{{Base: file}, {Base: file + "s"}, {Base: t.TempDir(), Group: "a/b"}} {
		_, err := cooklock.OpenDirectory(opt)
		require.ErrorIs(t, err, source.ErrInvalid)
	}
}

// A torn or foreign file is an error that says what to do, never a value.
func TestDamagedRegister(t *testing.T) {
	for _, text := range []string{"", "garbage", "multilock register 1 t 5\nabc", "multilock register 1 t 3\nabcd", "multilock register 2 t 3\nabc", "multilock register 1 t -\nabc", "\x00\x00\x00"} {
		base := t.TempDir()
		r := register(t, base, "nightly")
		_, _, err := r.Swap(t.Context(), []byte("abc"))
		require.NoError(t, err)
		path := filepath.Join(base, ".multilock/cook/groups/.locks/nightly/1/value")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, _, err = r.Peek(t.Context())
		require.ErrorIs(t, err, source.ErrInvalid, "%q", text)
		_, _, err = r.Swap(t.Context(), []byte("abc"))
		require.ErrorIs(t, err, source.ErrInvalid, "%q", text)
		require.NotErrorIs(t, err, source.ErrUnsure)
		require.ErrorContains(t, err, "remove the directory")
	}
}

// What crashes left goes with a later swap: an epoch whose successor is there at
// once, and what was being prepared after a day. Younger things stay: somebody may
// be at work on them.
func TestLeftoversAreSwept(t *testing.T) {
	base := t.TempDir()
	r := register(t, base, "nightly")
	_, _, err := r.Swap(t.Context(), []byte("one"))
	require.NoError(t, err)
	group, staging := filepath.Join(base, ".multilock/cook/groups/.locks/nightly"), filepath.Join(base, ".multilock/cook/staging")
	require.NoError(t, os.CopyFS(filepath.Join(group, "0"), os.DirFS(filepath.Join(group, "1"))))
	for _, name := range []string{"old", "young", "old.trash", "young.trash"} {
		require.NoError(t, os.CopyFS(filepath.Join(staging, name), os.DirFS(group)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(staging, "old file"), nil, 0o666))
	yesterday := time.Now().Add(-25 * time.Hour)
	for _, name := range []string{"old", "old.trash", "old file"} {
		require.NoError(t, os.Chtimes(filepath.Join(staging, name), yesterday, yesterday))
	}
	_, n, err := r.Swap(t.Context(), []byte("two"))
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	require.Equal(t, []string{"2"}, entries(t, group))
	require.ElementsMatch(t, []string{"young", "young.trash"}, entries(t, staging))
}
