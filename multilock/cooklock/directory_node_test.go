package cooklock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A swap that was not told what became of it asks those that came after it.
func TestNodeRemembersEarlierSwaps(t *testing.T) {
	n := node{token: "0"}
	tokens := []string{"0"}
	for range 2 * maxEarlier {
		token, err := newToken()
		require.NoError(t, err)
		tokens = append(tokens, token)
		n = n.after(token, []byte("value\n"+token))
		read, err := decodeNode(n.encode())
		require.NoError(t, err)
		require.Equal(t, n, read)
		require.LessOrEqual(t, len(n.encode()), maxNode-MaxValue+len(n.value))
	}
	for back := range uint64(maxEarlier + 1) {
		require.Equal(t, tokens[len(tokens)-1-int(back)], n.history(back))
	}
	require.Empty(t, n.history(maxEarlier+1))
}

func FuzzNode(f *testing.F) {
	f.Add(node{token: "t"}.encode())
	f.Add(node{token: "t"}.after("u", []byte("v")).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := decodeNode(data)
		if err != nil {
			require.ErrorIs(t, err, errDamaged)
			return
		}
		again, err := decodeNode(n.encode())
		require.NoError(t, err)
		require.Equal(t, n, again)
	})
}
