package nfs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a client keeps of a file that was removed while somebody on that host had it open
// can be neither removed there, nor moved, under whichever name.
func TestLeftoverIsHeldFast(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		p := newPlace(t)
		base := p.dir(t, h)
		for _, made := range []string{"lock", "aside"} {
			require.NoError(t, base.Mkdir(made, 0o777))
		}
		dir, aside := p.dir(t, h, "lock"), p.dir(t, h, "aside")
		reader, err := dir.Create("file", 0o666)
		require.NoError(t, err)
		require.NoError(t, dir.Unlink("file"))
		left := p.entries(t, "lock")
		require.Len(t, left, 1)
		require.True(t, strings.HasPrefix(left[0], ".nfs"), left[0])
		require.Equal(t, syscall.EBUSY, errnoOf(dir.Unlink(left[0])))
		for _, target := range []string{left[0], "trash"} {
			require.Equal(t, syscall.EBUSY, errnoOf(dir.Rename(left[0], aside, target)))
		}
		require.NoError(t, reader.Close())
		eventually(t, "the leftover goes", func() bool { return len(p.entries(t, "lock")) == 0 })
	})
}
