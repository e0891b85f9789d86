package place

import (
	"os"
	"slices"
	"strings"
)

// Conceal removes secrets from this process's environment, which appears in process lists and is
// inherited by children. It returns the original environment.
func Conceal() (environ []string) {
	environ = os.Environ()
	if !slices.ContainsFunc(environ, isSecretEntry) {
		return environ
	}
	for _, name := range []string{EnvPassword, EnvCloudshellToken, EnvPing, EnvSource} {
		_ = os.Unsetenv(name) // the names are valid
	}
	// If this fails, only processes that may read our memory can see the secrets.
	_ = forgetEnviron(EnvPassword, EnvCloudshellToken, EnvPing, EnvSource)
	return environ
}

func isSecretEntry(entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	return name == EnvPassword || name == EnvCloudshellToken || name == EnvPing || name == EnvSource && publicURL(value) != value
}
