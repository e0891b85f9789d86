package place

import (
	"os"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// Conceal takes what is secret out of the environment of this process: others can see that
// in a list of processes, and children get it. It returns the environment as it was.
func Conceal() (environ []string) {
	environ = os.Environ()
	if !slices.ContainsFunc(environ, isSecretEntry) {
		return environ
	}
	for _, name := range []string{EnvPassword, EnvCloudshellToken, EnvPing, EnvSource} {
		_ = os.Unsetenv(name) // it is a name
	}
	_ = forgetEnviron(EnvPassword, EnvCloudshellToken, EnvPing, EnvSource) // a file where only we, and who may look into our memory, could read it
	return environ
}

func isSecretEntry(entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	return name == EnvPassword || name == EnvCloudshellToken || name == EnvPing || name == EnvSource && publicURL(value) != value
}

// WithPassword is the place with the password of its user, wherever that is kept: for a
// process that finds neither it nor the variables with it in its environment.
func (p Place) WithPassword(e *console.Env) (Place, error) {
	full, err := p.FullURL(e)
	p.URL, _ = parseAddress(full) // zero for a directory
	p.Token = e.Getenv(EnvCloudshellToken)
	return p, err
}
