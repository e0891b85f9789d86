package fslock_test

import (
	"context"
	"encoding/json"
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
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// readings are all reads of a source that do not change a lock.
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
		"history": func(ctx context.Context, s *fslock.Source) error {
			_, err := source.Collect(s.History(ctx, time.Time{}))
			return err
		},
		"leftovers": func(ctx context.Context, s *fslock.Source) error { _, err := s.Leftovers(ctx); return err },
		"manifest": func(ctx context.Context, s *fslock.Source) error {
			_, err := s.Publish(ctx, []byte("other\n"))
			return err
		},
		"empty": func(ctx context.Context, s *fslock.Source) error { _, err := s.Empty(ctx); return err },
		"tidy":  func(ctx context.Context, s *fslock.Source) error { return s.Tidy(ctx, sweptName) },
		"follow": func(ctx context.Context, s *fslock.Source) error {
			f := s.Follow(time.Time{})
			defer f.Close()
			_, err := f.Next(ctx)
			return err
		},
		"look": func(ctx context.Context, s *fslock.Source) error {
			o, err := s.Observe(ctx, sweptName, multilock.StalePolicy{})
			if err != nil {
				return err
			}
			defer o.Close()
			if _, err = o.Look(ctx); err != nil {
				return err
			}
			change := filepath.Join(lockPath(s.Base()), sweptName+".result")
			if err := errors.Join(os.WriteFile(change, nil, 0o666), os.Remove(change)); err != nil {
				return err
			}
			_, err = o.Look(ctx)
			return err
		},
	}
}

// spared are the errors that a reading may ignore: of closing or removing after use, of the clock, without
// which an assessment still has a reason, and of one file among many that may be gone by then.
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

// read is a base directory with data for each reading.
func read(t *testing.T) (base string) {
	t.Helper()
	base, _, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, jobClaim())
	require.NoError(t, lease.MarkJob(t.Context(), someJob(self(t))))
	commit(t, lease, 1)
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "event")))
	_, err := src.Publish(t.Context(), []byte("list\n"))
	require.NoError(t, err)
	refuse(t, contend(t, src, sweptName, longClaim())) // what it has staged stays
	return base
}

// eachOperation makes each operation of each reading fail in turn, and checks the result of the reading.
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

// readingWithFault makes the n-th operation of a reading fail, and returns that operation.
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

// Every system error is reported: a partial answer would look complete.
// Rule: readers, barrier
func TestReadersAreToldOfEveryError(t *testing.T) {
	eachOperation(t, syscall.EIO, func(t *testing.T, reading string, met faultfs.Op, err error) {
		if !spared(reading, met) {
			require.ErrorIs(t, err, syscall.EIO, "%s %s", met.Kind, met.Path)
		}
	})
}

// A directory that was removed, or removed and made again, is not an error; except the base itself, and the
// clock, which is read again the next time.
// Rule: stale-names, readers
func TestReadersOutliveWhatIsRemoved(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ESTALE, syscall.ENOENT} {
		eachOperation(t, errno, func(t *testing.T, reading string, met faultfs.Op, err error) {
			switch {
			case reading == "result" && errors.Is(err, multilock.ErrNoResult):
			case reading == "empty" && errno == syscall.ESTALE:
			case reading == "leftovers" && err != nil:
				require.ErrorContains(t, err, "clock")
			default:
				require.NoError(t, err, "%s %s", met.Kind, met.Path)
			}
		})
	}
}

// useAll makes every use of a source.
func useAll(t *testing.T, src *fslock.Source, now time.Time) {
	t.Helper()
	ctx := t.Context()
	claim := longClaim()
	claim.Job = true
	c := contend(t, src, sweptName, claim)
	_ = c.Wake() // nil if there are no notifications
	lease := try(t, c)
	closed(t, c)
	require.NoError(t, lease.Renew(ctx))
	fence(t, lease)
	require.NoError(t, lease.MarkJob(ctx, someJob(self(t))))
	outcome(t, lease, source.ErrNoResult)
	commit(t, lease, 1)
	outcome(t, lease, nil)
	require.NoError(t, committer(lease).Forget(ctx))
	commit(t, lease, 2)
	names, err := src.Results(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{sweptName}, names)
	_, err = src.Result(ctx, sweptName)
	require.NoError(t, err)
	_, err = src.Revision(ctx)
	require.NoError(t, err)

	refuse(t, contend(t, src, sweptName, longClaim()))
	o := observe(t, src, sweptName, source.StalePolicy{})
	seen := look(t, o)
	require.Equal(t, source.StateHeld, seen.State)
	require.GreaterOrEqual(t, seen.Age, time.Duration(0))
	require.Less(t, seen.Age, watchdog)
	empty, err := src.Empty(ctx)
	require.NoError(t, err)
	require.False(t, empty)
	_, stop := src.Wake()
	stop()
	require.NoError(t, committer(lease).Forget(ctx))
	release(t, lease)
	require.NoError(t, src.Tidy(ctx, sweptName))

	f := src.Follow(now.Add(-time.Hour))
	require.NoError(t, src.Record(ctx, nil))
	require.NoError(t, src.Append(ctx, eventAt(now, "one")))
	require.Equal(t, []string{"one"}, follow(t, f))
	require.NoError(t, os.RemoveAll(historyDir(src.Base())))
	require.Empty(t, follow(t, f))
	require.NoError(t, src.Append(ctx, eventAt(now, "two")))
	require.Equal(t, []string{"two"}, follow(t, f))
	require.NoError(t, os.RemoveAll(historyDir(src.Base())))
	closed(t, f)
	_, err = src.Publish(ctx, []byte("list\n"))
	require.NoError(t, err)
	require.NoError(t, src.Retract(ctx))
	_, err = src.Leftovers(ctx)
	require.NoError(t, err)
	_, err = src.Sweep(ctx)
	require.NoError(t, err)
}

// A process may hold thousands of locks one after the other: none leaves a descriptor open.
// Rule: none (descriptors)
func TestNothingStaysOpen(t *testing.T) {
	for name, legacy := range map[string]bool{"plain": false, "legacy peers": true} {
		t.Run(name, func(t *testing.T) {
			base := fresh(t)
			src, err := fslock.Open(fslock.Options{Base: base, FS: sharedFS(), LegacyPeers: legacy})
			require.NoError(t, err)
			t.Run("used", func(t *testing.T) { useAll(t, src, time.Now()) })
			require.NoError(t, src.Close())
			requireClosed(t, base)
		})
	}
}

// Directories of .multilock that a source has open may be removed, completely or partly, and made again by
// other processes. One call may still fail; all later calls use the new ones.
// Rule: stale-names
func TestPrivateDirectoryIsRemovedUnderTheSource(t *testing.T) {
	for _, part := range []string{"", "staging", "groups"} {
		t.Run("all of "+part, func(t *testing.T) {
			base := fresh(t)
			src := open(t, fslock.Options{Base: base, FS: sharedFS()})
			t.Run("before", func(t *testing.T) { useAll(t, src, time.Now()) })
			require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", part)))
			if c, err := src.Contend(t.Context(), sweptName, longClaim(), source.StalePolicy{}); err == nil {
				closed(t, c)
			}
			t.Run("after", func(t *testing.T) { useAll(t, src, time.Now()) })
		})
	}
}

// Only files of the history are read, and only the requested events.
// Rule: history
func TestHistoryIsWhatIsAskedFor(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, at := range map[string]time.Duration{"the day before": -20 * time.Hour, "morning": -2 * time.Hour, "noon": 0, "evening": 7 * time.Hour} {
		require.NoError(t, src.Append(t.Context(), eventAt(noon.Add(at), name)))
	}
	foreign, err := json.Marshal(eventAt(noon, "foreign"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(historyDir(base), "2026-01-02.notes.txt"), append(foreign, '\n'), 0o666))
	events, err := source.Collect(src.History(t.Context(), noon))
	require.NoError(t, err)
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"noon", "evening"}, names)
}

// What a live process has staged stays, however long it has been waiting.
// Rule: staging
func TestLeftoverOfSomebodyWhoLives(t *testing.T) {
	base, _, src := contested(t, scene{})
	contendAndTry(t, src, sweptName, longClaim())
	refuse(t, contend(t, src, sweptName, longClaim()))
	ageStaged(t, base)
	left, err := src.Leftovers(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.False(t, left[0].Dead, left[0].Why)
	require.Contains(t, left[0].Why, "the process that made it is alive")
	swept, err := src.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, swept)
}
