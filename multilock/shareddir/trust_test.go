package shareddir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	stranger = 65531 // a user, and a group that nobody here is in
	nobody   = 65534
)

func dirOf(mode fs.FileMode, uid, gid uint32) vfs.Info {
	return vfs.Info{Mode: fs.ModeDir | mode, UID: uid, GID: gid, Links: 2}
}

func fileOf(uid, gid uint32) vfs.Info { return vfs.Info{Mode: 0o644, UID: uid, GID: gid, Links: 1} }

// unknown is the answer of a directory that one may not write to.
func unknown() (uint32, error) { return 0, errors.New("no") }

// Owner and mode decide whether an entry is trusted.
// Rule: none (docs/security.md)
func TestWhoIsTrusted(t *testing.T) {
	me, mine := id(os.Geteuid()), id(os.Getegid())
	plain, grouped := dirOf(0o755, me, mine), dirOf(0o775|fs.ModeSetgid, me, stranger)
	for what, c := range map[string]struct {
		trust Trust
		base  vfs.Info
		of    vfs.Info
		why   string
	}{
		"our own":                        {base: plain, of: dirOf(0o755, me, mine)},
		"root's":                         {base: plain, of: dirOf(0o755, 0, 0)},
		"another's":                      {base: plain, of: dirOf(0o755, stranger, mine), why: "belongs to uid 65531"},
		"another's file":                 {base: plain, of: fileOf(stranger, mine), why: "belongs to uid 65531"},
		"for everybody":                  {base: plain, of: dirOf(0o757, me, mine), why: "all users can write"},
		"for a group":                    {base: plain, of: dirOf(0o775, me, stranger), why: "group gid 65531 may write"},
		"for root's group":               {base: plain, of: dirOf(0o775, 0, 0), why: "(gid 0) may write"},
		"for root's group, declared":     {base: dirOf(0o775|fs.ModeSetgid, 0, 0), of: dirOf(0o775, 0, 0)},
		"of the declared group":          {base: grouped, of: dirOf(0o775|fs.ModeSetgid, stranger, stranger)},
		"a file of the declared group":   {base: grouped, of: fileOf(stranger, stranger)},
		"of another group":               {base: grouped, of: dirOf(0o775, me, stranger+1), why: "group gid 65532 may write"},
		"a file of another group":        {base: grouped, of: fileOf(stranger, stranger+1), why: "belongs to uid 65531"},
		"for everybody in the group's":   {base: grouped, of: dirOf(0o777, me, stranger), why: "all users can write"},
		"of a group without the bit":     {base: dirOf(0o775, me, stranger), of: fileOf(stranger, stranger), why: "belongs to uid 65531"},
		"of a group a stranger declared": {base: dirOf(0o775|fs.ModeSetgid, stranger, stranger), of: fileOf(stranger, stranger), why: "belongs to uid 65531"},
		"of a user that is named":        {trust: Trust{Users: []uint32{stranger}}, base: plain, of: fileOf(stranger, stranger)},
		"of a group that he declared":    {trust: Trust{Users: []uint32{stranger}}, base: dirOf(0o775|fs.ModeSetgid, stranger, stranger), of: fileOf(nobody, stranger)},
		"anything":                       {trust: Trust{Anybody: true}, base: plain, of: dirOf(0o777, stranger, stranger)},
		"a FIFO":                         {trust: Trust{Anybody: true}, base: plain, of: vfs.Info{Mode: fs.ModeNamedPipe, UID: me}, why: "not a regular file"},
	} {
		t.Run(what, func(t *testing.T) {
			err := newCircle(c.trust, c.base, unknown).admit(c.of, false)
			if c.why == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.why)
			require.ErrorAs(t, err, new(*Refusal))
		})
	}
}

// A file with two names may be one elsewhere: it is read, and not appended to.
// Rule: none (docs/security.md)
func TestHardLinkIsNotAppendedTo(t *testing.T) {
	c := newCircle(Trust{Anybody: true}, dirOf(0o777, 0, 0), unknown)
	file := fileOf(stranger, stranger)
	file.Links = 2
	require.NoError(t, c.admit(file, false))
	require.ErrorIs(t, c.admit(file, true), syscall.EACCES)
}

// A server that squashes root makes another user of it. That is asked for once, and only if an
// unknown user owns something.
// Rule: none (docs/security.md)
func TestAliasOnTheServerIsOurselves(t *testing.T) {
	asked := 0
	c := newCircle(Trust{}, dirOf(0o755, 0, 0), func() (uint32, error) { asked++; return nobody, nil })
	require.NoError(t, c.admit(fileOf(0, 0), false))
	require.Zero(t, asked)
	for range 2 {
		require.NoError(t, c.admit(fileOf(nobody, nobody), false))
		require.Error(t, c.admit(fileOf(stranger, stranger), false))
	}
	require.Equal(t, 1, asked)
}

// A directory that others may write to is refused with what to do; nothing is made there.
// Rule: base
func TestBaseForEverybodyIsRefused(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Chmod(base, 0o777))
	_, err := Open(Options{Path: base})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, "all users can write to it")
	require.ErrorContains(t, err, "--trust")
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Empty(t, entries)
	b, err := Open(Options{Path: base, Trust: Trust{Anybody: true}})
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

// In a directory like /tmp each user has one of his own, which is reported until it is there.
// Looking does not make it.
// Rule: base
func TestDirectoryLikeTmp(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Chmod(base, 0o777|fs.ModeSticky))
	for n := range 2 {
		b, err := Open(Options{Path: base})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(b.Path(), base+"/"+PrivateDir+"-"), b.Path())
		require.Equal(t, n == 0, strings.Contains(b.Notice, b.Path()), b.Notice)
		if n == 0 {
			_, err := b.OpenDir(PrivateDir)
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoDirExists(t, b.Path())
			require.NoError(t, b.Mkdir("made", 0o777))
		}
		require.DirExists(t, filepath.Join(b.Path(), "made"))
		require.Empty(t, b.Moved(b.Dir, "."))
		info, err := os.Stat(b.Path())
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
		require.NoError(t, b.Close())
	}
	b, err := Open(Options{Path: base, Trust: Trust{Anybody: true}})
	require.NoError(t, err)
	require.Equal(t, base, b.Path())
	require.NoError(t, b.Close())
}

// The directory that is ours by its name may be a link, or another user's.
// Rule: base
func TestOwnDirectoryThatIsNot(t *testing.T) {
	base, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(base, 0o777|fs.ModeSticky))
	b, err := Open(Options{Path: base})
	require.NoError(t, err)
	own := b.Path()
	require.NoError(t, os.Mkdir(own, 0o777))
	require.NoError(t, os.Chmod(own, 0o777))
	require.ErrorContains(t, b.Mkdir("x", 0o700), "all users can write to it", "it came after the look")
	require.NoError(t, b.Close())
	require.NoError(t, os.Remove(own))

	require.NoError(t, os.Symlink(elsewhere, own))
	_, err = Open(Options{Path: base})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.NoError(t, os.Remove(own))

	require.NoError(t, os.Mkdir(own, 0o777))
	require.NoError(t, os.Chmod(own, 0o777))
	_, err = Open(Options{Path: base})
	require.ErrorContains(t, err, "all users can write to it")
	require.NoError(t, os.Chmod(own, 0o777|fs.ModeSticky))
	_, err = Open(Options{Path: base})
	require.ErrorContains(t, err, "all users can write to it", "it is not one more directory like /tmp")
	entries, err := os.ReadDir(own)
	require.NoError(t, err)
	require.Empty(t, entries)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(own, stranger, os.Getegid()))
		require.NoError(t, os.Chmod(own, 0o770|fs.ModeSetgid))
		_, err = Open(Options{Path: base, Trust: Trust{Users: []uint32{stranger}}})
		require.ErrorContains(t, err, "belongs to uid 65531", "a group that both are in does not make it ours")
		require.NoError(t, os.Chmod(own, 0o700))
		require.NoError(t, os.Chown(own, stranger, stranger))
		_, err = Open(Options{Path: base})
		require.ErrorContains(t, err, "belongs to uid 65531")
	}
}

// Only root and this user can have written what is accepted, unless others are trusted as well.
// Rule: replace
func TestOnlyOurs(t *testing.T) {
	own := id(os.Geteuid())
	for what, c := range map[string]struct {
		trust Trust
		base  vfs.Info
		want  bool
	}{
		"nobody else":     {Trust{}, dirOf(0o755, own, 0), true},
		"ourselves, also": {Trust{Users: []uint32{own, 0}}, dirOf(0o755, own, 0), true},
		"a user":          {Trust{Users: []uint32{own + 1}}, dirOf(0o755, own, 0), false},
		"everybody":       {Trust{Anybody: true}, dirOf(0o755, own, 0), false},
		"a group":         {Trust{}, dirOf(fs.ModeSetgid|0o775, own, id(os.Getegid())+1), false},
	} {
		require.Equal(t, c.want, newCircle(c.trust, c.base, unknown).onlyOurs(), what)
	}
}
