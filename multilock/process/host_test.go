package process

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMachineIDIsHashed(t *testing.T) {
	const raw = "0123456789abcdef0123456789abcdef"
	hash := hashMachineID(raw)
	// The value is on disk in records of other hosts, so it must never change.
	require.Equal(t, "794e4d09624a24ae", hash)
	require.Regexp(t, `^[0-9a-f]{16}$`, hash)
	require.NotEqual(t, hash, hashMachineID(raw+"0"))
	require.NotContains(t, raw, hash)
}

func TestMachineIDThatNamesNoMachine(t *testing.T) {
	for _, raw := range []string{
		"", "uninitialized", "00000000000000000000000000000000", "00000000-0000-0000-0000-000000000000",
	} {
		require.Empty(t, hashMachineID(raw), raw)
	}
}

func TestBootIDs(t *testing.T) {
	cases := []struct {
		a, b        string
		same, other bool
	}{
		{"", "", false, false},
		{"x", "", false, false},
		{"x", "x", true, false},
		{"x", "y", false, true},
		{"m@100", "m@100", true, false},
		{"m@100", "m@102", true, false},
		{"m@100", "m@103", false, false},
		{"m@100", "n@100", false, false},
		{"m@100", "x", false, false},
		{"m@100", "m@late", false, false},
		{"@100", "@101", false, false},
		{"m@1", "m@late", false, false},
		{"m@1699999999", "m@1700000000", true, false},
		{"m@10a", "m@10b", false, false},
	}
	for _, c := range cases {
		require.Equal(t, c.same, sameBoot(c.a, c.b), "%q %q", c.a, c.b)
		require.Equal(t, c.same, sameBoot(c.b, c.a), "%q %q", c.b, c.a)
		require.Equal(t, c.other, otherBoot(c.a, c.b), "%q %q", c.a, c.b)
		require.Equal(t, c.other, otherBoot(c.b, c.a), "%q %q", c.b, c.a)
	}
}

func TestBootTimeNeedsAMachine(t *testing.T) {
	require.Equal(t, "m@7", bootTimeID("m", 7))
	require.Empty(t, bootTimeID("", 7))
	require.Empty(t, bootTimeID("m", 0))
	require.Equal(t, "m@1700000000", bootTimeID("m", 1700000000))
}

func TestNamesInMessages(t *testing.T) {
	require.Equal(t, "a) (b", printable("a) (b"))
	require.Equal(t, `"a\nb\x1b[2J"`, printable("a\nb\x1b[2J"))
}
