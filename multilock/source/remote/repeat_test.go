package remote_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// Tries are made until one is answered, each in a part of the time, and a doubt stays.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		doubt, err := remote.Repeat(t.Context(), time.Minute, 3*time.Second, func(ctx context.Context) (remote.Tried, error) {
			if tries++; tries == 3 {
				return remote.Tried{}, nil
			}
			<-ctx.Done()
			return remote.Tried{Doubt: tries == 1, Again: true, Nobody: true}, ctx.Err()
		})
		require.NoError(t, err)
		require.True(t, doubt)
		require.Equal(t, 3, tries)

		tries = 0
		start := time.Now()
		doubt, err = remote.Repeat(t.Context(), 10*time.Second, time.Second, func(context.Context) (remote.Tried, error) {
			tries++
			return remote.Tried{Again: true}, errNoAnswer
		})
		require.Equal(t, errNoAnswer, err)
		require.False(t, doubt)
		require.GreaterOrEqual(t, time.Since(start), 10*time.Second)
		require.Less(t, tries, 60, "there are pauses in between")

		tries = 0
		_, err = remote.Repeat(t.Context(), 10*time.Second, time.Second, func(ctx context.Context) (remote.Tried, error) {
			if tries++; tries == 1 {
				return remote.Tried{Again: true, Told: true}, errNoAnswer
			}
			<-ctx.Done()
			return remote.Tried{Again: true}, ctx.Err()
		})
		require.Equal(t, errNoAnswer, err, "why the time was over")
	})
}

// What was refused for good, what nobody is there for, and what nobody waits for any more, is tried once.
func TestRepeatNoMore(t *testing.T) {
	for name, tried := range map[string]remote.Tried{"refused": {}, "nobody": {Again: true, Nobody: true}, "over": {Again: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if name == "over" {
			cancel()
		}
		tries := 0
		_, err := remote.Repeat(ctx, time.Minute, time.Second, func(context.Context) (remote.Tried, error) {
			tries++
			return tried, errNoAnswer
		})
		require.Equal(t, errNoAnswer, err, name)
		require.Equal(t, 1, tries, name)
	}
}

// Facts are asked for until they are told, and by one at a time.
func TestFacts(t *testing.T) {
	facts := remote.NewFacts[string]()
	asked := 0
	ask := func() (string, error) {
		if asked++; asked == 1 {
			return "", errNoAnswer
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := facts.Learn(ctx, func() (string, error) { return "", nil })
		require.ErrorIs(t, err, context.Canceled, "somebody else is asking")
		return "version 3", nil
	}
	_, err := facts.Learn(t.Context(), ask)
	require.Equal(t, errNoAnswer, err)
	for range 2 {
		told, err := facts.Learn(t.Context(), ask, func(f *string) error {
			*f += ", with an index"
			return nil
		})
		require.NoError(t, err)
		require.Contains(t, told, "version 3, with an index")
	}
	require.Equal(t, 2, asked)
	_, err = facts.Learn(t.Context(), ask, func(*string) error { return errNoAnswer })
	require.Equal(t, errNoAnswer, err)
}

// cabinet is in memory; meanwhile happens between a look at it and what follows.
type cabinet struct {
	there     *remote.Contents
	parts     [][]byte
	meanwhile func()
	looks     int
}

func (s *cabinet) Contents(context.Context, string) (*remote.Contents, error) {
	s.looks++
	defer s.meanwhile()
	return s.there, nil
}

func (s *cabinet) Put(_ context.Context, _ string, mine remote.Contents, parts [][]byte) (*remote.Contents, error) {
	if s.there == nil {
		s.there, s.parts = &mine, parts
	}
	return s.there, nil
}

func (s *cabinet) Part(_ context.Context, _ string, of remote.Contents, n int) ([]byte, error) {
	if s.there == nil || s.there.ID != of.ID {
		return nil, remote.ErrRetracted
	}
	return s.parts[n], nil
}

// A group has one manifest: that of the first who has published, whenever that was.
func TestPublish(t *testing.T) {
	limits := remote.ManifestLimits{Part: 3, Most: 10, Server: "memory"}
	empty := func() *cabinet { return &cabinet{meanwhile: func() {}} }
	s := empty()
	_, err := remote.OpenManifest(t.Context(), s)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = limits.Publish(t.Context(), s, []byte("eleven byte"))
	require.ErrorIs(t, err, source.ErrInvalid)
	require.Equal(t, 1, s.looks, "it was not looked for: it is too large")
	for range 2 {
		there, err := limits.Publish(t.Context(), s, []byte("ten bytes."))
		require.NoError(t, err)
		require.Equal(t, "ten bytes.", string(there))
	}
	there, err := limits.Publish(t.Context(), s, []byte("another"))
	require.NoError(t, err)
	require.Equal(t, "ten bytes.", string(there))
	opened, err := remote.OpenManifest(t.Context(), s)
	require.NoError(t, err)
	read, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.Equal(t, "ten bytes.", string(read))

	s = empty()
	s.meanwhile = func() { // another host is faster
		s.meanwhile = func() {}
		mine, parts := remote.Cut([]byte("first"), 3)
		s.there, s.parts = &mine, parts
	}
	there, err = limits.Publish(t.Context(), s, []byte("second"))
	require.NoError(t, err)
	require.Equal(t, "first", string(there))
	s.meanwhile = func() { s.there = nil } // it is retracted
	_, err = limits.Publish(t.Context(), s, []byte("second"))
	require.True(t, errors.Is(err, remote.ErrRetracted) && errors.Is(err, source.ErrPassing), err)
}
