//go:build unix

package jointest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A parsed account equals the written one, or is rejected.
func FuzzAccount(f *testing.F) {
	clock := 1.5
	const command = "multilock doctor"
	f.Add(Account{Turns: 3, Clock: &clock, Fences: []uint64{1, 2}}.text(command, true))
	for _, text := range []string{"", command, command + ": ", command + ": []", command + ": null", command + ": [true,1,null,null]", command + `: [1,"x",{},[-1]]`, command + ": [true,1,2,[3],4]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, harm, ok := parseAccount(text, command)
		require.NotNil(t, a.Fences)
		if !ok {
			require.False(t, harm)
			return
		}
		again, harmed, ok := parseAccount(a.text(command, harm), command)
		require.True(t, ok)
		require.Equal(t, harm, harmed)
		a.Fences = a.Fences[:min(len(a.Fences), maxFences)]
		require.Equal(t, a, again)
	})
}
