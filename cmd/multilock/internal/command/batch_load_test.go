package command

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	for text, want := range map[string]memorySize{"500M": 500 << 20, "8g": 8 << 30, "1.5GiB": 3 << 29, "4096": 4096, "1kb": 1024, "2T": 2 << 40} {
		var size memorySize
		require.NoError(t, size.Set(text))
		require.Equal(t, want, size, text)
	}
	for _, wrong := range []string{"", "M", "-1G", "0", "8X", "1GG", "1MK", "NaN", "1e30T", "8 G", "infG"} {
		require.Error(t, new(memorySize).Set(wrong), wrong)
	}
	for want, size := range map[string]memorySize{"8G": 8 << 30, "1.5G": 3 << 29, "1023.9M": 1<<30 - 1, "12": 12, "1K": 1024} {
		require.Equal(t, want, size.String())
	}
	var load loadLimit
	require.NoError(t, load.Set("1.5"))
	require.InDelta(t, 1.5, float64(load), 0)
	require.NoError(t, load.Set("50%"))
	require.InDelta(t, float64(runtime.NumCPU())/2, float64(load), 0.001)
	for _, wrong := range []string{"", "0", "-1", "%", "NaN", "Inf", "x"} {
		require.Error(t, load.Set(wrong), wrong)
	}
}

func TestBusy(t *testing.T) {
	say := t.Errorf
	require.Nil(t, new(limits).busy(say))
	require.Empty(t, (&limits{load: 1e6, memFree: 1}).busy(say)())
	require.Regexp(t, `^[0-9.]+[TGM] of memory free$`, (&limits{load: 1e6, memFree: 1 << 60}).busy(say)())
	if busy := (&limits{load: 1e-9}).busy(say)(); busy != "" { // it is not, on a machine left alone
		require.Regexp(t, `^load [0-9.]+$`, busy)
	}
}
