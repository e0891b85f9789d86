package simnfs_test

import (
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/vfs"
)

var cached = simnfs.Options{MinAge: 30 * time.Second, MaxAge: time.Minute}

// two returns the same directory on two hosts.
func two(t *testing.T, s *simnfs.Server, opt simnfs.Options) (a, b vfs.Dir) {
	t.Helper()
	a, err := s.Mount(opt).OpenDir("/")
	require.NoError(t, err)
	b, err = s.Mount(opt).OpenDir("/")
	require.NoError(t, err)
	return a, b
}

func absent(t *testing.T, d vfs.Dir, name string) {
	t.Helper()
	_, err := d.StatName(name)
	require.ErrorIs(t, err, syscall.ENOENT)
}

// in runs f in a bubble, whose clock is also the server's.
func in(t *testing.T, f func(t *testing.T, s *simnfs.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, simnfs.Serve(time.Now)) })
}

func TestAbsentNameIsRememberedUntilTheDirectoryIsAskedFor(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, cached)
		absent(t, a, "x")
		require.NoError(t, b.Mkdir("x", 0o755))
		absent(t, a, "x")
		require.ErrorIs(t, a.Rmdir("x"), syscall.ENOENT) // from the cache
		_, err := a.Stat()
		require.NoError(t, err)
		_, err = a.StatName("x")
		require.NoError(t, err)
	})
}

func TestAbsentNameIsForgottenInTime(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, cached)
		absent(t, a, "x")
		require.NoError(t, b.Mkdir("x", 0o755))
		time.Sleep(time.Minute)
		_, err := a.StatName("x")
		require.NoError(t, err)
	})
}

func TestMkdirAsks(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, cached)
		absent(t, a, "x")
		require.NoError(t, b.Mkdir("x", 0o755))
		require.ErrorIs(t, a.Mkdir("x", 0o755), syscall.EEXIST)
	})
}

func TestPresentNameIsEnteredFromMemory(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, cached)
		require.NoError(t, a.Mkdir("x", 0o755))
		require.NoError(t, b.Rmdir("x"))
		old, err := a.Enter("x")
		require.NoError(t, err)
		_, err = old.Stat()
		require.ErrorIs(t, err, syscall.ESTALE)
		_, err = a.OpenDir("x")
		require.ErrorIs(t, err, syscall.ENOENT) // resolved once more
	})
}

func TestOwnRemovalLeavesADirectoryWithoutLinks(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, _ := two(t, s, cached)
		require.NoError(t, a.Mkdir("x", 0o755))
		x, err := a.OpenDir("x")
		require.NoError(t, err)
		require.NoError(t, a.Rmdir("x"))
		info, err := x.Stat()
		require.NoError(t, err)
		require.Zero(t, info.Links)
		require.ErrorIs(t, x.Mkdir("y", 0o755), syscall.ENOENT)
	})
}

func TestOpenFileIsRenamedWhenItsOwnHostRemovesIt(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, cached)
		f, err := a.Create("x", 0o644)
		require.NoError(t, err)
		_, err = f.Write([]byte("text"))
		require.NoError(t, err)
		reader, err := a.Open("x")
		require.NoError(t, err)
		require.NoError(t, a.Unlink("x"))
		require.Len(t, s.Names(), 1)
		require.Contains(t, s.Names()[0], ".nfs")
		absent(t, b, "x")
		require.ErrorIs(t, a.Unlink(s.Names()[0]), syscall.EBUSY)
		text, err := io.ReadAll(io.NewSectionReader(reader, 0, 4))
		require.NoError(t, err)
		require.Equal(t, "text", string(text))
		require.NoError(t, f.Close())
		require.Len(t, s.Names(), 1)
		require.NoError(t, reader.Close())
		require.Empty(t, s.Names())
	})
}

func TestReaderOfWhatAnotherHostRemovedGetsESTALE(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, cached)
		f, err := a.Create("x", 0o644)
		require.NoError(t, err)
		require.NoError(t, b.Unlink("x"))
		_, err = f.Write([]byte("text"))
		require.ErrorIs(t, err, syscall.ESTALE)
		require.NoError(t, f.Close())
	})
}

func TestRenameReplacesAnEmptyDirectoryAlone(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, _ := two(t, s, cached)
		for _, name := range []string{"full", "full/file", "empty", "other"} {
			require.NoError(t, a.Mkdir(name, 0o755))
		}
		require.ErrorIs(t, a.Rename("empty", a, "full"), syscall.ENOTEMPTY)
		require.NoError(t, a.Rename("full", a, "empty"))
		require.Equal(t, []string{"empty", "empty/file", "other"}, s.Names())
	})
}

// Two changes within one tick of the server's clock leave the same change attribute.
func TestChangesWithinATickLookLikeOne(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		s.Tick = time.Second
		a, b := two(t, s, cached)
		require.NoError(t, b.Mkdir("other", 0o755))
		absent(t, a, "x")
		require.NoError(t, b.Mkdir("x", 0o755))
		_, err := a.Stat()
		require.NoError(t, err)
		absent(t, a, "x")
		time.Sleep(time.Second)
		require.NoError(t, b.Touch())
		_, err = a.Stat()
		require.NoError(t, err)
		_, err = a.StatName("x")
		require.NoError(t, err)
	})
}

func TestLocalFilesystemRemembersNothing(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		a, b := two(t, s, simnfs.Options{Local: true})
		absent(t, a, "x")
		require.NoError(t, b.Mkdir("x", 0o755))
		_, err := a.StatName("x")
		require.NoError(t, err)
	})
}

func TestTransportDecidesWhatBecomesOfARequest(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		twice := s.Mount(simnfs.Options{Transport: func(r simnfs.Request, execute func() error) error {
			if r.Changes {
				_ = execute()
			}
			return execute()
		}})
		d, err := twice.OpenDir("/")
		require.NoError(t, err)
		require.ErrorIs(t, d.Mkdir("x", 0o755), syscall.EEXIST)
		require.Equal(t, []string{"x"}, s.Names())
	})
}

// A removal by a version 4 client removes whatever has the name when the request arrives.
func TestRemovalOfADirectoryThatIsAFileByNow(t *testing.T) {
	for _, v4 := range []bool{true, false} {
		in(t, func(t *testing.T, s *simnfs.Server) {
			opt := cached
			opt.V4 = v4
			a, b := two(t, s, opt)
			require.NoError(t, a.Mkdir("x", 0o755))
			require.NoError(t, b.Rmdir("x"))
			_, err := b.Create("x", 0o644)
			require.NoError(t, err)
			if err := a.Rmdir("x"); v4 {
				require.NoError(t, err)
				require.Empty(t, s.Names())
			} else {
				require.ErrorIs(t, err, syscall.ENOTDIR)
			}
		})
	}
}

// A lookup with version 4 updates only the name: another name remains absent.
func TestV4LearnsOfTheNameAlone(t *testing.T) {
	for _, v4 := range []bool{true, false} {
		in(t, func(t *testing.T, s *simnfs.Server) {
			opt := cached
			opt.V4 = v4
			a, b := two(t, s, opt)
			absent(t, a, "x")
			require.NoError(t, b.Mkdir("x", 0o755))
			absent(t, a, "y")
			if err := a.Rmdir("x"); v4 {
				require.ErrorIs(t, err, syscall.ENOENT)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// forgetful runs a test with a server that loses changes, after creating three directories at three times.
func forgetful(t *testing.T, test func(s *simnfs.Server, a, b vfs.Dir)) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		s.Forgets = true
		a, b := two(t, s, cached)
		for _, name := range []string{"x", "y", "z"} {
			require.NoError(t, a.Mkdir(name, 0o755))
			time.Sleep(time.Second)
		}
		test(s, a, b)
	})
}

// An async export loses the changes of the last two times, with everything created then.
func TestForgetfulServer(t *testing.T) {
	forgetful(t, func(s *simnfs.Server, _, b vfs.Dir) {
		z, err := b.OpenDir("z")
		require.NoError(t, err)
		s.Forget()
		require.Equal(t, []string{"x"}, s.Names())
		_, err = z.Stat()
		require.ErrorIs(t, err, syscall.ESTALE)
	})
}

// After a crash no change attribute is reused, however many changes there are: a client that has cached an
// absent name finds it.
func TestForgetfulServerGivesNoChangeAttributeTwice(t *testing.T) {
	for changes := range 4 {
		forgetful(t, func(s *simnfs.Server, a, b vfs.Dir) {
			_, err := b.OpenDir("lock")
			require.ErrorIs(t, err, syscall.ENOENT)
			s.Forget()
			for n := range changes {
				require.NoError(t, a.Mkdir(string(rune('1'+n)), 0o755))
			}
			require.NoError(t, a.Mkdir("lock", 0o755))
			_, err = b.Stat()
			require.NoError(t, err)
			_, err = b.OpenDir("lock")
			require.NoError(t, err)
		})
	}
}

// A server that replaces no directory rejects a rename to an empty one; it does replace files.
func TestServerThatReplacesNothing(t *testing.T) {
	in(t, func(t *testing.T, s *simnfs.Server) {
		s.ReplacesNothing = true
		a, _ := two(t, s, cached)
		require.NoError(t, a.Mkdir("x", 0o755))
		require.NoError(t, a.Mkdir("y", 0o755))
		require.ErrorIs(t, a.Rename("x", a, "y"), syscall.EEXIST)
		require.NoError(t, a.Rename("x", a, "z"))
		for _, name := range []string{"f", "g"} {
			f, err := a.Create(name, 0o644)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		require.NoError(t, a.Rename("f", a, "g"))
		require.Equal(t, []string{"g", "y", "z"}, s.Names())
	})
}
