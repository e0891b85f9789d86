package place

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJobEnvironHasAbsolutePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	here := Absolute("x")
	require.True(t, filepath.IsAbs(here))
	require.Equal(t, []string{
		"MULTILOCK_DIR=" + here, "MULTILOCK_PASSWORD_FILE=" + here, "MULTILOCK_CONFIG=none", "MULTILOCK_SOURCE=cook+file:" + here + "?period=5m", "OTHER=x",
	}, JobEnviron([]string{
		"MULTILOCK_DIR=x", "MULTILOCK_PASSWORD_FILE=x", "MULTILOCK_CONFIG=none", "MULTILOCK_SOURCE=cook+file:x?period=5m", "OTHER=x", "MULTILOCK_PASSWORD=secret",
	}))
	for _, same := range []string{"MULTILOCK_DIR=", "MULTILOCK_SOURCE=file:///x", "MULTILOCK_SOURCE=file:/x", "MULTILOCK_SOURCE=etcd://host/x", "MULTILOCK_SOURCE="} {
		require.Equal(t, []string{same}, JobEnviron([]string{same}))
	}
}
