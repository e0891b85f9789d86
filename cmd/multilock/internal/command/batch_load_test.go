package command

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
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
	if busy := (&limits{load: 1e-9}).busy(say)(); busy != "" { // not busy, on an otherwise idle machine
		require.Regexp(t, `^load [0-9.]+$`, busy)
	}
}
