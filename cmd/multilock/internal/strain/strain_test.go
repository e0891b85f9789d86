package strain_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/strain"
)

func TestThisHost(t *testing.T) {
	load, err := strain.Load()
	require.NoError(t, err)
	require.GreaterOrEqual(t, load, 0.0)
	require.GreaterOrEqual(t, strain.Processors(), runtime.NumCPU())
	memory, err := strain.ReadMemory()
	require.NoError(t, err)
	require.Greater(t, memory.Total, uint64(64<<20))
	require.Greater(t, memory.Available, uint64(1<<20))
	require.Less(t, memory.Available, memory.Total)
}
