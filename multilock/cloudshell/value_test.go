package cloudshell

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

func someHeld() held {
	r := source.Record{Token: strings.Repeat("5f", 16), Claim: source.Claim{
		Holder: source.Holder{
			Identity: process.Identity{Host: "exec-server-3", Boot: "0f0e1c2d-1111-4222-8333-444455556666", Namespace: "pid:[4026531836]", PID: 4711, Start: 987654321},
			User:     "ada", Command: "rsync -a /src; /dst=\"x\" 100% é",
		},
		TTL: 2 * time.Minute, Heartbeat: 12 * time.Second, Job: true,
	}}
	moment := time.UnixMilli(1763752689000).UTC()
	r.Prepared = moment
	return held{record: r, reservation: digestOf("R"), sign: moment, taken: moment}
}

func TestHeldRoundTrip(t *testing.T) {
	want := someHeld()
	text := want.encode()
	require.LessOrEqual(t, len(text), valueLimit)
	found := newTurn(7, "", text)
	require.Empty(t, found.why)
	require.Equal(t, want, found.held)
}

// A value never exceeds the limit, and the fields that identify the holder are never shortened.
func TestHeldFits(t *testing.T) {
	h := someHeld()
	h.record.Holder.Host = strings.Repeat("h", 64)
	h.record.Holder.User = strings.Repeat("ü", 40)
	h.record.Holder.Command = strings.Repeat("☃ ", 400)
	text := h.encode()
	require.LessOrEqual(t, len(text), valueLimit)
	found := newTurn(7, "", text)
	require.Empty(t, found.why)
	require.Equal(t, h.record.Token, found.held.record.Token)
	require.Equal(t, h.record.Holder.Boot, found.held.record.Holder.Boot)
	require.Equal(t, h.record.Holder.Start, found.held.record.Holder.Start)
	require.Equal(t, text, found.held.encode(), "cutting it again changes nothing")
}

func TestForeignValues(t *testing.T) {
	whole := someHeld().encode()
	for name, text := range map[string]string{
		"nothing": "", "a name": "resource 7", "a later format": strings.Replace(whole, "ml1", "ml2", 1), "an unknown kind": strings.Replace(whole, "held", "lent", 1),
		"a field twice": whole + ";n=1", "no token": strings.Replace(whole, ";n=", ";zz=", 1), "no ttl": strings.Replace(whole, ";l=", ";zz=", 1),
		"no reservation": strings.Replace(whole, ";r=", ";zz=", 1), "bad escape": whole + ";q=%zz", "bad number": strings.Replace(whole, ";l=", ";l=-", 1),
		"cut off": whole[:60], "free in no reservation": "ml1;free", "free without it": "ml1;free;n=1", "a list": "ml1;list;r=" + digestOf("R"),
	} {
		top := newTurn(3, "", text)
		require.NotEmpty(t, top.why, name)
		s, bare := &Source{digest: digestOf("R")}, newTurn(0, "", text)
		for _, v := range []*view{{turns: []turn{top}}, {bare: &bare}} {
			found := s.read(v)
			require.True(t, found.isHeld, name)
			require.NotEmpty(t, found.record.Foreign, name)
		}
	}
}

// FuzzValue: with any text in the attribute the lock counts as held, unless the text is a valid
// value that says otherwise.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{someHeld().encode(), "", "resource 7", "ml1;free;n=1;r=" + digestOf("R"), "ml1;held;l=1", "ml1;free", "ml1;;;=;="} {
		f.Add(seed)
	}
	s := &Source{digest: digestOf("R")}
	f.Fuzz(func(t *testing.T, text string) {
		top := newTurn(1, "", text)
		if !s.read(&view{turns: []turn{top}}).isHeld && (top.why != "" || top.reservation == s.digest && top.kind != kindFree) {
			t.Fatalf("%q was taken for free", text)
		}
		_ = newTurn(0, "", text)
	})
}

func TestAliases(t *testing.T) {
	for _, group := range []string{"", "convert", "a.TURN"} {
		s := &Source{prefix: prefixOf(group)}
		aliases := map[string]string{}
		for _, name := range []string{
			"MUTEX", "my mutex_2.x", " a", "a ", "TURN", "TURN.5", "x.TURN.5", "TURNTABLE", "[2E]", "é", "\x00", "[", "]", "[5",
		} {
			alias := s.aliasOf(name)
			require.Empty(t, aliases[alias], "%q and %q", name, aliases[alias])
			aliases[alias] = name
			found, ok := s.nameOf(alias)
			require.True(t, ok, name)
			require.Equal(t, name, found)
			_, _, isTurn := cutTurn(alias)
			require.False(t, isTurn, alias)
			base, number, ok := cutTurn(turnAlias(alias, 12))
			require.True(t, ok)
			require.Equal(t, alias, base)
			require.EqualValues(t, 12, number)
		}
	}
	s := &Source{}
	for _, name := range []string{"MUTEX", "my mutex_2.x", "TURNTABLE", "Ports-1"} {
		require.Equal(t, name, s.aliasOf(name), "a script's name is its alias")
	}
	_, ok := s.nameOf("x[41]")
	require.False(t, ok)
}

// Texts of a server, or of another program, are shortened in messages.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	require.Less(t, len((&callError{message: long}).Error()), 8<<10)
	require.Less(t, len((&callError{err: errors.New(long)}).Error()), 8<<10)
	s := &Source{}
	require.Less(t, len(s.read(&view{bare: &turn{text: long, why: "foreign"}}).record.Foreign), 8<<10)
}
