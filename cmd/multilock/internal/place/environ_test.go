//go:build unix

package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A job prints its environment sooner or later.
func TestEnvironmentOfAJobHasNoSecrets(t *testing.T) {
	t.Parallel()
	environ := []string{
		"HOME=/root", "MULTILOCK_PASSWORD=top", "MULTILOCK_PASSWORD_FILE=/etc/p", "MULTILOCK_SOURCE=mongodb://ada:top@h/a.b?tls=true", "EMPTY=", "strange",
	}
	require.Equal(t, []string{
		"HOME=/root", "MULTILOCK_PASSWORD_FILE=/etc/p", "MULTILOCK_SOURCE=mongodb://ada@h/a.b?tls=true", "EMPTY=", "strange",
	}, JobEnviron(environ))
}
