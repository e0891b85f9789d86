//go:build linux || darwin || freebsd

package faultfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// opened returns a faulty file system and its open base directory. The injector applies from the first
// operation after the open.
func opened(t *testing.T, inject faultfs.Injector) (string, *faultfs.FS, vfs.Dir) {
	t.Helper()
	base := t.TempDir()
	faulty := faultfs.New(vfs.OS{}, nil)
	dir, err := faulty.OpenDir(base)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	faulty.Inject(inject)
	return base, faulty, dir
}

func exists(t *testing.T, path ...string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(path...))
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	return err == nil
}

func TestOperationsAreNumbered(t *testing.T) {
	var ops []faultfs.Op
	_, faulty, dir := opened(t, func(op faultfs.Op) error {
		ops = append(ops, op)
		return nil
	})
	require.NoError(t, dir.Mkdir("a", 0o777))
	sub, err := dir.OpenDir("a")
	require.NoError(t, err)
	require.NoError(t, sub.Close())

	require.Len(t, ops, 6)
	for i, kind := range []string{"mkdir", "mkdir", "opendir", "opendir", "close", "close"} {
		require.Equal(t, i/2, ops[i].N)
		require.Equal(t, kind, ops[i].Kind)
		require.Equal(t, "a", ops[i].Path)
		require.Equal(t, faultfs.Phase(i%2), ops[i].Phase)
	}
	faulty.Inject(func(op faultfs.Op) error {
		require.Zero(t, op.N, "a new injector counts from 0")
		return nil
	})
	require.NoError(t, dir.Touch())
	faulty.Inject(nil)
}

func TestFailBeforeIsNotCarriedOut(t *testing.T) {
	base, _, dir := opened(t, faultfs.FailAt(1, faultfs.Before, syscall.EIO))
	require.NoError(t, dir.Mkdir("first", 0o777))
	err := dir.Mkdir("second", 0o777)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorAs(t, err, new(*fs.PathError))
	require.True(t, exists(t, base, "first"))
	require.False(t, exists(t, base, "second"))
}

func TestFailAfterLosesTheReply(t *testing.T) {
	base, _, dir := opened(t, faultfs.FailAt(0, faultfs.After, syscall.ETIMEDOUT))
	require.ErrorIs(t, dir.Mkdir("lost", 0o777), syscall.ETIMEDOUT)
	require.True(t, exists(t, base, "lost"))
	require.ErrorIs(t, dir.Mkdir("lost", 0o777), syscall.EEXIST)
}

func TestFailAfterClosesWhatWasOpened(t *testing.T) {
	base, _, dir := opened(t, faultfs.FailAt(0, faultfs.After, syscall.EIO))
	f, err := dir.Create("file", 0o666)
	require.ErrorIs(t, err, syscall.EIO)
	require.Nil(t, f)
	require.True(t, exists(t, base, "file"))
}

func TestCloseIsCarriedOutWhateverItAnswers(t *testing.T) {
	for _, phase := range []faultfs.Phase{faultfs.Before, faultfs.After} {
		base, faulty, dir := opened(t, nil)
		require.NoError(t, os.WriteFile(filepath.Join(base, "f"), []byte("x"), 0o666))
		f, err := dir.Open("f")
		require.NoError(t, err)
		faulty.Inject(faultfs.FailAt(0, phase, syscall.EIO))
		require.ErrorIs(t, f.Close(), syscall.EIO)
		_, err = f.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.EBADF)
	}
}

func TestPretend(t *testing.T) {
	base, faulty, dir := opened(t, faultfs.FailAt(0, faultfs.Before, faultfs.ErrPretend))
	require.NoError(t, dir.Mkdir("never", 0o777))
	require.False(t, exists(t, base, "never"))

	faulty.Inject(faultfs.FailAt(0, faultfs.After, faultfs.ErrPretend))
	require.NoError(t, dir.Rmdir("never"), "the answer ENOENT is reported as success")

	faulty.Inject(faultfs.FailAt(0, faultfs.Before, faultfs.ErrPretend))
	_, err := dir.OpenDir("never")
	require.ErrorContains(t, err, "cannot pretend")
}

func TestPretendedWriteIsWhole(t *testing.T) {
	_, faulty, dir := opened(t, nil)
	f, err := dir.Create("file", 0o666)
	require.NoError(t, err)
	faulty.Inject(faultfs.FailAt(0, faultfs.Before, faultfs.ErrPretend))
	n, err := f.Write([]byte("lost"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	info, err := f.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size)
	require.NoError(t, f.Close())
}

// wrapped is a directory in another wrapper.
type wrapped struct{ vfs.Dir }

func TestRename(t *testing.T) {
	var ops []faultfs.Op
	base, faulty, dir := opened(t, nil)
	require.NoError(t, dir.Mkdir("to", 0o777))
	to, err := dir.OpenDir("to")
	require.NoError(t, err)
	defer to.Close()
	for i, target := range []vfs.Dir{to, wrapped{to}} {
		require.NoError(t, dir.Mkdir("from", 0o777))
		faulty.Inject(func(op faultfs.Op) error {
			ops = append(ops, op)
			return nil
		})
		require.NoError(t, dir.Rename("from", target, string(rune('a'+i))))
		faulty.Inject(nil)
	}
	require.True(t, exists(t, base, "to", "a"))
	require.True(t, exists(t, base, "to", "b"))
	require.Equal(t, "from -> to/b", ops[3].Path)
	require.Equal(t, filepath.Join(base, "to", "b"), ops[3].Target)
}

func TestTrace(t *testing.T) {
	var got strings.Builder
	base, faulty, dir := opened(t, faultfs.Trace(&got))
	require.NoError(t, os.WriteFile(filepath.Join(base, "f"), []byte("x"), 0o666))
	const one, two = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	require.NoError(t, dir.Mkdir(one+".clock", 0o777))
	require.Error(t, dir.Rename(two, dir, one+".clock"))
	require.NoError(t, dir.Rmdir(one+".clock"))
	f, err := dir.Open("f")
	require.NoError(t, err)
	buf := make([]byte, 2)
	_, err = f.Read(buf)
	require.NoError(t, err)
	_, err = f.Read(buf)
	require.Error(t, err)
	require.NoError(t, f.Close())
	faulty.Inject(nil)
	require.NoError(t, dir.Touch())
	require.Equal(t, strings.TrimLeft(`
mkdir <token1>.clock
rename <token2> -> <token1>.clock = ENOENT
rmdir <token1>.clock
open f
read f
read f = EOF
file.close f
`, "\n"), got.String())
}

func TestDescribe(t *testing.T) {
	_, faulty, dir := opened(t, nil)
	faulty.Describe(vfs.FileSystem{Type: "told", Local: true})
	kind, err := dir.FileSystem()
	require.NoError(t, err)
	require.Equal(t, vfs.FileSystem{Type: "told", Local: true}, kind)
}

func TestChain(t *testing.T) {
	var got strings.Builder
	_, _, dir := opened(t, faultfs.Chain(faultfs.Trace(&got), faultfs.FailAt(0, faultfs.After, syscall.EIO)))
	require.ErrorIs(t, dir.Touch(), syscall.EIO)
	require.Equal(t, "touch .\n", got.String())
}
