package place

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
)

// The variables with secrets. None has an option, because every user of the host can read command lines
// with ps(1).
const (
	EnvPassword        = "MULTILOCK_PASSWORD"
	EnvPasswordFile    = "MULTILOCK_PASSWORD_FILE"
	EnvPing            = "MULTILOCK_PING"
	EnvCloudshellToken = "MULTILOCK_CLOUDSHELL_TOKEN" // of the current CloudShell script
)

// passwordPlaces lists where to put a password.
const passwordPlaces = "put it into the variable " + EnvPassword + ", or into a file that " + EnvPasswordFile + " names, or the whole URL into " + EnvSource

// FullURL returns the source's URL with its user's password, if there is one.
func (p *Place) FullURL(e *console.Env) (string, error) {
	full := p.URL
	if full.user == "" || full.password != "" {
		return full.String(), nil
	}
	password, err := readPassword(e)
	if err != nil {
		return "", err
	}
	if password != "" {
		_, full.password, _ = strings.Cut(url.UserPassword("", password).String(), ":")
	}
	return full.String(), nil
}

// WithPassword returns the place with its user's password and token, for a process whose environment
// has neither.
func (p Place) WithPassword(e *console.Env) (Place, error) {
	full, err := p.FullURL(e)
	p.URL, _ = parseAddress(full) // zero for a directory
	p.Token = e.Getenv(EnvCloudshellToken)
	return p, err
}

func readPassword(e *console.Env) (string, error) {
	path := e.Getenv(EnvPasswordFile)
	if password := e.Getenv(EnvPassword); password != "" || path == "" {
		return password, nil
	}
	password, err := passwordIn(path)
	if err != nil {
		return "", fmt.Errorf("read the password from the file that %s names: %w", EnvPasswordFile, err)
	}
	return password, nil
}

// maxPassword limits how much of a file is read.
const maxPassword = 64 << 10

// passwordIn returns the first line of a file that no other user can read.
func passwordIn(path string) (string, error) {
	f, err := outfile.Peek(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkPrivate(info)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPassword))
	if err != nil {
		return "", err
	}
	password, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(password, "\r"), nil
}

// secretError keeps a password out of an error's text.
type secretError struct {
	err      error
	password string
}

func (s *secretError) Error() string { return strings.ReplaceAll(s.err.Error(), s.password, "...") }
func (s *secretError) Unwrap() error { return s.err }

// withoutSecrets removes the password from the error of a library that received the full URL.
func (p *Place) withoutSecrets(e *console.Env, err error) error {
	full, _ := p.FullURL(e)
	a, ok := parseAddress(full)
	if !ok || a.password == "" {
		return err
	}
	err = &secretError{err, a.password}
	if plain, bad := url.PathUnescape(a.password); bad == nil {
		err = &secretError{err, plain}
	}
	return err
}
