package cloudshell

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// An alias belongs to one name, which it encodes, and never looks like a turn's alias.
func FuzzAlias(f *testing.F) {
	for _, name := range []string{"MUTEX", "a.TURN.5", "[2E]", "é", "\x00", " a ", "TURN"} {
		f.Add("", name)
		f.Add("group.TURN", name)
	}
	f.Fuzz(func(t *testing.T, group, name string) {
		s := &Source{prefix: prefixOf(group)}
		alias := s.aliasOf(name)
		_, _, isTurn := cutTurn(alias)
		require.False(t, isTurn)
		found, ok := s.nameOf(alias)
		require.Equal(t, name != "", ok)
		require.Equal(t, name, found)
		base, number, ok := cutTurn(turnAlias(alias, 7))
		require.True(t, ok)
		require.Equal(t, alias, base)
		require.EqualValues(t, 7, number)
	})
}

// FuzzForeignAlias decodes aliases of other programs.
func FuzzForeignAlias(f *testing.F) {
	for _, alias := range []string{"MUTEX", "M.TURN.0", "M.TURN.17", "M.TURN.017", "M.TURN.99999999999999999999", "[", "[zz]", "[2e]", "a(b)", "x[41]", "[41]B"} {
		f.Add(alias)
	}
	f.Fuzz(func(t *testing.T, alias string) {
		if base, number, ok := cutTurn(alias); ok {
			require.Equal(t, alias, turnAlias(base, number))
			require.Positive(t, number)
		}
		s := &Source{}
		name, ok := s.nameOf(alias)
		require.False(t, ok && (name == "" || s.aliasOf(name) != alias), "no lock could have it")
	})
}

// No error about a URL contains the password, and a valid URL gives consistent options.
func FuzzLocate(f *testing.F) {
	for _, rest := range []string{
		"quali:9029/7b3c?domain=Lab&alias=PORTS&timeout=5s&pause=1s-3s", "quali/7b3c?pause=5s-2s", "%zz/7b3c", "quali/7b3c#x", "quali/7b3c?insecure=perhaps", "[::1]:8029/R", "?;", "quali/7b3c?timeout=-1s",
	} {
		f.Add(rest, `{"serverAddress":"quali","tsAPIScheme":"https","adminAuthToken":"tok"}`)
		f.Add(rest, "\\")
	}
	const secret = "s3cr3tive"
	f.Fuzz(func(t *testing.T, rest, context string) {
		if strings.Contains(rest+context, secret[:3]) {
			return
		}
		l, err := Locate("cloudshell://ann:"+secret+"@"+rest, []string{"QUALICONNECTIVITYCONTEXT=" + context})
		if err != nil {
			require.ErrorIs(t, err, source.ErrInvalid)
			require.NotContains(t, err.Error(), secret[:3])
			return
		}
		require.NotContains(t, fmt.Sprintf("%v %+v", l, l), secret)
		require.Equal(t, "ann", l.User)
		require.NotEmpty(t, l.Name)
		require.LessOrEqual(t, l.Pause.Least, l.Pause.Most)
		if opt, err := l.check(); err != nil {
			require.NotContains(t, err.Error(), secret[:3])
		} else {
			require.Positive(t, opt.Timeout)
		}
	})
}
