package shareddir

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// Modes are changed only on new files and directories: what a member of the group has moved into
// the way stays as it is, and nothing is appended to it.
// Rule: none (docs/security.md)
func TestPrivateFilesMovedIntoTheWay(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Chmod(base, 0o770|fs.ModeSetgid))
	b, err := Open(Options{Path: base})
	require.NoError(t, err)
	defer b.Close()
	secret, dir := filepath.Join(base, "secret"), filepath.Join(base, "dir")
	require.NoError(t, os.WriteFile(secret, []byte("root's"), 0o600))
	for name, open := range map[string]func() (vfs.File, error){
		"append":         func() (vfs.File, error) { return b.OpenAppend("secret", AppendMode) },
		"durable":        func() (vfs.File, error) { return b.OpenDurable("secret", AppendMode) },
		"append durable": func() (vfs.File, error) { return b.OpenAppendDurable("secret", AppendMode) },
	} {
		_, err := open()
		require.ErrorIs(t, err, syscall.EACCES, name)
	}
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.ErrorIs(t, b.Mkdir("dir", DirMode), syscall.EEXIST)
	for name, mode := range map[string]fs.FileMode{secret: 0o600, dir: 0o700} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}

	f, err := b.OpenAppend("new", AppendMode)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, b.Mkdir("new dir", DirMode))
	for name, mode := range map[string]fs.FileMode{"new": 0o060, "new dir": 0o070} {
		info, err := os.Stat(filepath.Join(base, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm()&0o070, "%s: whatever the umask", name)
	}
}

// One process makes directories in a group's base, another one swaps each for a private one.
// Rule: none (docs/security.md)
func TestDirectorySwappedAfterItWasMade(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Chmod(base, 0o770|fs.ModeSetgid))
	b, err := Open(Options{Path: base})
	require.NoError(t, err)
	defer b.Close()
	private := filepath.Join(base, "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(private, "file"), nil, 0o600))
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, private, unix.AT_FDCWD, filepath.Join(base, "made"), unix.RENAME_EXCHANGE)
			}
		}
	})
	made := filepath.Join(base, "made")
	for range 1000 {
		_ = b.Mkdir("made", DirMode)
		for _, name := range []string{made, private} {
			dir, err := os.Open(name)
			if err != nil {
				continue
			}
			entries, _ := dir.Readdirnames(1)
			info, err := dir.Stat()
			require.NoError(t, err)
			if len(entries) > 0 {
				require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
			}
			require.NoError(t, dir.Close())
		}
		if os.Remove(made) != nil && os.Remove(private) == nil { // the private one has the other's name
			_ = os.Rename(made, private)
		}
	}
	close(stop)
	swaps.Wait()
}
