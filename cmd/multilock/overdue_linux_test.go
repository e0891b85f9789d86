package main_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user with read permission alone can monitor jobs.
func TestOverdueForOneWhoMayOnlyRead(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	s := &station{t: t, base: openToAll(t)}
	require.NoError(t, os.Chmod(s.base, 0o755))
	s.must("run", "-n", "hourly", "--every", "1h", "--", "true")
	nobody := member{s, 65534, "022"}
	require.Regexp(t, `^OVERDUE OK - 1 job \|`, nobody.must("overdue"))
}
