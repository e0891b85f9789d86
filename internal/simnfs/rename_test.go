package simnfs_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/simnfs"
)

// What a kernel finds out before it asks: programs 6203, 6249 and 6644 of package conform.
func TestRenameIsRefusedByWhatIsRemembered(t *testing.T) {
	opt := cached
	opt.V4 = true
	a, b := two(t, simnfs.Serve(time.Now), opt)
	require.NoError(t, b.Mkdir("x", 0o755))
	x, err := a.OpenDir("x")
	require.NoError(t, err)
	require.NoError(t, b.Rmdir("x"))
	require.ErrorIs(t, a.Rename("x", x, "x"), syscall.EINVAL, "into itself, as it remembers")
	require.ErrorIs(t, a.Rename("y", x, "x"), syscall.ENOENT, "there is nothing to be moved, wherever to")

	for _, name := range []string{"f", "g"} {
		_, err := a.OpenDurable(name, 0o644)
		require.NoError(t, err)
	}
	require.NoError(t, b.Unlink("f"))
	require.NoError(t, b.Unlink("g"))
	require.ErrorIs(t, a.Rename("f", a, "g"), syscall.ETXTBSY, "its own open file is in the way, as it remembers")
}
