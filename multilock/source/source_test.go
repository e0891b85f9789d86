package source_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		is   error
		want string
	}{
		{&source.LostError{Name: "nightly", Silence: 1500*time.Millisecond + 400*time.Microsecond}, source.ErrLost, `lock "nightly" is lost: no renewal was confirmed for 1.5s`},
		{&source.LostError{Name: "nightly", Err: syscall.ESTALE}, source.ErrLost, `lock "nightly" is lost: stale file handle`},
		{&source.LostError{Name: "nightly", Err: syscall.ESTALE}, syscall.ESTALE, `stale`},
		{&source.OpError{Source: "fslock", Op: "rename", Name: "nightly", Err: syscall.EIO}, syscall.EIO, `fslock: lock "nightly": rename: input/output error`},
		{&source.OpError{Source: "fslock", Op: "stage", Err: syscall.ENOSPC, Hint: "free some"}, syscall.ENOSPC, `fslock: stage: no space left on device (free some)`},
		{&source.InvalidError{What: "lock name", Got: "a/b", Why: "no slash"}, source.ErrInvalid, `lock name "a/b": no slash`},
		{&source.InvalidError{What: "base", Got: "x", Why: "no", Err: syscall.ENOTDIR}, syscall.ENOTDIR, `base "x": no`},
	} {
		t.Run(tt.want, func(t *testing.T) {
			require.ErrorIs(t, tt.err, tt.is)
			require.Contains(t, tt.err.Error(), tt.want)
		})
	}
}

func TestTextWithoutAHint(t *testing.T) {
	require.Equal(t, "fslock: stage: no space left on device", (&source.OpError{Source: "fslock", Op: "stage", Err: syscall.ENOSPC}).Error())
}

func TestStatesHaveNames(t *testing.T) {
	for state, want := range map[source.State]string{
		source.StateFree: "free", source.StateHeld: "held", source.StateSuspect: "suspect", source.StateDead: "dead", 9: "State(9)",
	} {
		text, err := state.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// promising is a source with a guarantee about one trait.
type promising struct{ source.Source }

func (promising) Guarantees() []source.Guarantee {
	return []source.Guarantee{{Trait: source.TraitOneClock, Kept: true, Why: "it has one"}}
}

func TestGuaranteeOf(t *testing.T) {
	guarantee, ok := source.GuaranteeOf(promising{}, source.TraitOneClock)
	require.True(t, ok)
	require.Equal(t, "it has one", guarantee.Why)
	_, ok = source.GuaranteeOf(promising{}, source.TraitResults)
	require.False(t, ok)
	_, ok = source.GuaranteeOf(nil, source.TraitOneClock)
	require.False(t, ok)
}

func TestTextsAtTheirLimits(t *testing.T) {
	require.Equal(t, "abc", source.Shorten("abc", 3))
	require.Equal(t, "ab...", source.Shorten("abcdef", 5))
	require.Equal(t, "a...", source.Shorten("aäbcd", 5))
	require.Equal(t, "...", source.Shorten("abcd", 0))
	require.Equal(t, "a...", source.Shorten(source.Shorten("aäbcd", 5), 5), "what was cut stays as it is")
	require.Equal(t, "node7 (detached)", source.Holder{Identity: process.Identity{Host: "node7"}}.String())
	require.Equal(t, "node7 pid 1", source.Holder{Identity: process.Identity{Host: "node7", PID: 1}}.String())
}

func TestOnlySomeTroublePasses(t *testing.T) {
	passing, lasting := &source.OpError{Err: syscall.EROFS, Passing: true}, &source.OpError{Err: syscall.EROFS}
	require.ErrorIs(t, passing, source.ErrPassing)
	require.NotErrorIs(t, passing, source.ErrHeld)
	require.NotErrorIs(t, lasting, source.ErrPassing)
	require.NotErrorIs(t, lasting, source.ErrHeld)
}

// Whatever a history contains, an event is of limited size.
func TestEventIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	who := process.Identity{Host: long, Machine: long, Boot: long, Namespace: long}
	e := source.Event{
		What: source.EventKind(long), Name: long, Token: long, By: who, User: long, Command: long, Why: long, Signal: long, Output: long,
		Holder: &source.Holder{Identity: who, User: long, Command: long, Every: long},
	}
	text, err := json.Marshal(e.Bounded())
	require.NoError(t, err)
	require.Less(t, len(text), 24<<10)
	short := source.Event{Name: strings.Repeat("n", 248), Token: "t", Signal: "killed", By: process.Identity{Host: "h"}}
	require.Equal(t, short, short.Bounded())
}

func TestHolderIsBoundedAndPrintable(t *testing.T) {
	long := source.Holder{User: string(make([]byte, 2*source.MaxUser)), Command: string(make([]byte, 2*source.MaxCommand))}
	short := long.Bounded()
	require.Len(t, short.User, source.MaxUser)
	require.Len(t, short.Command, source.MaxCommand)
	h := source.Holder{User: "a\x1b[2J", Command: "ok"}.Printable()
	require.Equal(t, "a\ufffd[2J", h.User)
	require.Equal(t, "ok", h.Command)
}
