package load_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/load"
)

func TestThisHost(t *testing.T) {
	average, err := load.Average()
	require.NoError(t, err)
	require.GreaterOrEqual(t, average, 0.0)
	require.GreaterOrEqual(t, load.Processors(), runtime.NumCPU())
	memory, err := load.ReadMemory()
	require.NoError(t, err)
	require.Greater(t, memory.Total, uint64(64<<20))
	require.Greater(t, memory.Available, uint64(1<<20))
	require.Less(t, memory.Available, memory.Total)
}
