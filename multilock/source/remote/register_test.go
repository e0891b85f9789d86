package remote_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// shelf is a cell in memory. before and after happen around a replacement.
type shelf struct {
	content       remote.Content
	before, after func()
	lost          error // what is told of a replacement that was made
	doubt         bool
}

func (s *shelf) Read(context.Context) (remote.Content, error) { return s.content, nil }

func (s *shelf) Replace(_ context.Context, this remote.Content, value []byte) (remote.Content, bool, error) {
	if s.before != nil {
		s.before()
	}
	if this.Number == s.content.Number && string(this.Value) == string(s.content.Value) {
		s.content = remote.Content{Value: value, Number: this.Number + 1}
	}
	if s.after != nil {
		s.after()
	}
	return s.content, s.doubt, s.lost
}

// put is what somebody else swaps in.
func (s *shelf) put(value string) {
	s.content = remote.Content{Value: []byte(value), Number: s.content.Number + 1}
}

// TestRegisterInDoubt: what was replaced is told exactly, and who cannot know it says so.
func TestRegisterInDoubt(t *testing.T) {
	t.Parallel()
	once := func(do func()) func() {
		return func() {
			if do != nil {
				do()
			}
			do = nil
		}
	}
	for name, c := range map[string]struct {
		set func(*shelf)
		old string
		err error
	}{
		"nobody else":                        {func(*shelf) {}, "first", nil},
		"another one before":                 {func(s *shelf) { s.before = once(func() { s.put("other") }) }, "other", nil},
		"another one of the same number":     {func(s *shelf) { s.before = once(func() { s.content.Value = []byte("restored") }) }, "restored", nil},
		"a register that was removed":        {func(s *shelf) { s.before = once(func() { s.content = remote.Content{} }) }, "", nil},
		"an answer was lost":                 {func(s *shelf) { s.doubt = true }, "first", nil},
		"an answer was lost, another after":  {func(s *shelf) { s.doubt, s.after = true, once(func() { s.put("other") }) }, "", source.ErrUnsure},
		"an answer was lost, another before": {func(s *shelf) { s.doubt, s.before = true, once(func() { s.put("other") }) }, "", source.ErrUnsure},
		"all answers are lost":               {func(s *shelf) { s.doubt, s.lost = true, errors.New("nobody there") }, "", source.ErrUnsure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			s.put("first")
			r := remote.NewRegister(s)
			_, _, err := r.Peek(t.Context())
			require.NoError(t, err)
			c.set(s)
			old, n, err := r.Swap(t.Context(), []byte("mine"))
			require.ErrorIs(t, err, c.err)
			if err == nil {
				require.Equal(t, c.old, string(old))
				require.Equal(t, remote.Content{Value: []byte("mine"), Number: n}, s.content)
			}
		})
	}
	s := &shelf{lost: errors.New("refused")}
	_, _, err := remote.NewRegister(s).Swap(t.Context(), []byte("mine"))
	require.EqualError(t, err, "refused")
	require.NotErrorIs(t, err, source.ErrUnsure)
}
