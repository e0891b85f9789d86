//go:build unix

package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nightly": "nightly", "a b": "a b", "../../etc/x": "..%2F..%2Fetc%2Fx", ".": "%2E", "..": "%2E%2E", "%2F": "%252F", "\x00": "%00",
	} {
		require.Equal(t, want, fileName(name))
	}
}
