package show_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/show"
)

func TestSpark(t *testing.T) {
	t.Parallel()
	require.Equal(t, "▁▂▄▅█", show.Spark([]float64{0, 0.15, 0.5, 0.6, 1}))
	require.Equal(t, "▁▁", show.Spark([]float64{0, 0}))
	require.Equal(t, "▁█", show.Spark([]float64{-3, 2}))
	require.Empty(t, show.Spark(nil))
}
