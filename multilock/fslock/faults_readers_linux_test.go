package fslock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// readings are all that can be asked of a source without changing a lock.
func readings() map[string]func(context.Context, *fslock.Source) error {
	return map[string]func(context.Context, *fslock.Source) error{
		"names":   func(ctx context.Context, s *fslock.Source) error { _, err := s.Names(ctx); return err },
		"results": func(ctx context.Context, s *fslock.Source) error { _, err := s.Results(ctx); return err },
		"result": func(ctx context.Context, s *fslock.Source) error {
			r, err := s.Result(ctx, sweptName)
			if err == nil && r.Attempt != 1 {
				return errors.New("half a result")
			}
			return err
		},
		"revision": func(ctx context.Context, s *fslock.Source) error { _, err := s.Revision(ctx); return err },
		"history":  func(ctx context.Context, s *fslock.Source) error { _, err := s.History(ctx, time.Time{}); return err },
		"leftovers": func(ctx context.Context, s *fslock.Source) error {
			_, err := s.Leftovers(ctx)
			return err
		},
		"manifest": func(ctx context.Context, s *fslock.Source) error {
			_, err := s.Publish(ctx, []byte("other\n"))
			return err
		},
		"vacant": func(ctx context.Context, s *fslock.Source) error { _, err := s.Vacant(ctx); return err },
		"tidy":   func(ctx context.Context, s *fslock.Source) error { return s.Tidy(ctx, sweptName) },
		"follow": func(ctx context.Context, s *fslock.Source) error {
			f := s.Follow(time.Time{})
			defer f.Close()
			_, err := f.Next(ctx)
			return err
		},
		"look": func(ctx context.Context, s *fslock.Source) error {
			o, err := s.Observe(ctx, sweptName, multilock.Patience{})
			if err != nil {
				return err
			}
			defer o.Close()
			if _, err = o.Look(ctx); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(s.Base(), fslock.DefaultGroup, sweptName, sweptName+".result"), nil, 0o666); err != nil {
				return err
			}
			if err := os.Remove(filepath.Join(s.Base(), fslock.DefaultGroup, sweptName, sweptName+".result")); err != nil {
				return err
			}
			_, err = o.Look(ctx)
			return err
		},
	}
}

// spared are the errors of which a reading need not tell: of what is closed or removed
// after use, of the clock, without which a verdict still says what it rests on, and of one
// file in many that may be gone by then.
func spared(reading string, op faultfs.Op) bool {
	switch {
	case op.Kind == "close", op.Kind == "file.close", op.Kind == "rmdir" && strings.HasSuffix(op.Path, ".clock"):
		return true
	case reading == "look":
		return strings.Contains(op.Path, ".multilock")
	case reading == "leftovers":
		return strings.Contains(op.Path, "staging/<token1>") || strings.Contains(op.Path, sweptName)
	}
	return false
}

// read is a base directory in which there is something to each reading.
func read(t *testing.T) (base string) {
	t.Helper()
	base, _, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, jobClaim())
	require.NoError(t, lease.MarkJob(t.Context(), someJob(theSelf(t))))
	commit(t, lease, 1)
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "event")))
	_, err := src.Publish(t.Context(), []byte("list\n"))
	require.NoError(t, err)
	refuse(t, contend(t, src, sweptName, longClaim())) // what it has staged stays
	return base
}

// eachOperation makes one operation of each reading after the other fail, and checks what
// the reading answers.
func eachOperation(t *testing.T, errno syscall.Errno, check func(t *testing.T, reading string, met faultfs.Op, err error)) {
	base := read(t)
	for name, ask := range readings() {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				met, err := readingWithFault(t, base, n, errno, ask)
				if met.Kind == "" {
					require.Positive(t, n)
					return
				}
				check(t, name, met, err)
			}
		})
	}
}

// readingWithFault makes the n-th operation of a reading fail, and says which that was.
func readingWithFault(t *testing.T, base string, n int, errno syscall.Errno, ask func(context.Context, *fslock.Source) error) (met faultfs.Op, err error) {
	t.Helper()
	faulty := sharedFS()
	src, err := fslock.Open(fslock.Options{Base: base, FS: faulty})
	require.NoError(t, err)
	faulty.Inject(func(op faultfs.Op) error {
		if op.N != n || op.Phase != faultfs.Before {
			return nil
		}
		met = op
		return errno
	})
	err = ask(t.Context(), src)
	faulty.Inject(nil)
	require.NoError(t, src.Close())
	return met, err
}

// Who asks is told of every error of the system: half an answer looks like a whole one.
func TestReadersAreToldOfEveryError(t *testing.T) {
	eachOperation(t, syscall.EIO, func(t *testing.T, reading string, met faultfs.Op, err error) {
		if !spared(reading, met) {
			require.ErrorIs(t, err, syscall.EIO, "%s %s", met.Kind, met.Path)
		}
	})
}

// What was removed and made again, or is not there any more, is no error; but for the base
// itself, and for the clock, which is read anew the next time.
func TestReadersOutliveWhatIsRemoved(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ESTALE, syscall.ENOENT} {
		eachOperation(t, errno, func(t *testing.T, reading string, met faultfs.Op, err error) {
			switch {
			case reading == "result" && errors.Is(err, multilock.ErrNoResult):
			case reading == "vacant" && errno == syscall.ESTALE:
			case reading == "leftovers" && err != nil:
				require.ErrorContains(t, err, "clock")
			default:
				require.NoError(t, err, "%s %s", met.Kind, met.Path)
			}
		})
	}
}
