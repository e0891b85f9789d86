package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"500M": 500 << 20, "8g": 8 << 30, "1.5GiB": 3 << 29, "4096": 4096, "1kb": 1024, "2T": 2 << 40} {
		var size Size
		require.NoError(t, size.Set(text))
		require.Equal(t, want, size, text)
	}
	for _, wrong := range []string{"", "M", "-1G", "0", "8X", "1GG", "1MK", "NaN", "1e30T", "8 G", "infG"} {
		require.Error(t, new(Size).Set(wrong), wrong)
	}
	for want, size := range map[string]Size{"8G": 8 << 30, "1.5G": 3 << 29, "1023.9M": 1<<30 - 1, "12": 12, "1K": 1024} {
		require.Equal(t, want, size.String())
	}
}
