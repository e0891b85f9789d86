package place

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/internal/span"
)

// EnvConfig names a file to read instead of the two below; "none" disables all configuration files.
const EnvConfig = "MULTILOCK_CONFIG"

const (
	noConfig     = "none"
	systemConfig = "/etc/multilock.conf"
	userConfig   = "multilock/config" // below XDG_CONFIG_HOME, which is ~/.config
	maxConfig    = 64 << 10
)

// config is the content of the configuration files. The user's file overrides the system's, and the
// environment and the command line override both.
type config struct {
	Dir, Source, Group, Trust, TTL chosen
	Local, RequireShared           chosen

	Capture, CaptureKeep, CaptureSize chosen
}

// configFile is the format of a configuration file: TOML.
type configFile struct {
	Dir    string `toml:"dir"`
	Source string `toml:"source"`
	Group  string `toml:"group"`
	Trust  string `toml:"trust"`
	TTL    string `toml:"ttl"`
	Local  bool   `toml:"local"`

	RequireShared bool `toml:"require_shared"`

	Capture     bool   `toml:"capture"`
	CaptureKeep int    `toml:"capture_keep"`
	CaptureSize string `toml:"capture_size"`
}

// knownKeys are the valid keys of a file.
var knownKeys = []string{"dir", "source", "group", "ttl", "trust", "local", "require_shared", "capture", "capture_keep", "capture_size"}

func known() string {
	last := len(knownKeys) - 1
	return strings.Join(knownKeys[:last], ", ") + " and " + knownKeys[last]
}

// Capture configures whether, and how much of, the output of runs is stored with the locks.
type Capture struct {
	On   bool
	Keep int          // runs; 0 for the default
	Size console.Size // 0 for the default
}

// UsualCapture is the default configuration.
var UsualCapture = Capture{Keep: 20, Size: 64 << 20}

// MinCaptureSize is enough for a few frames in each file of a run.
const MinCaptureSize console.Size = 2 << 20

// Check rejects values that would store nothing.
func (c Capture) Check() error {
	switch {
	case c.Keep < 0:
		return errors.New("keep at least one run")
	case c.Size > 0 && c.Size < MinCaptureSize:
		return fmt.Errorf("%s is too little; keep at least %s", c.Size, MinCaptureSize)
	}
	return nil
}

func readConfig(e *console.Env) (c config, err error) {
	files := configFiles(e)
	for _, path := range files {
		isNamed := e.Getenv(EnvConfig) != ""
		text, err := readConfigFile(path, isNamed)
		if !isNamed && isNone(e, path, err) {
			continue
		}
		if err == nil {
			err = c.add(path, text)
		}
		if err != nil {
			return c, fmt.Errorf("configuration %s: %w", path, err)
		}
	}
	return c, nil
}

// isNone reports whether there is no such file, or whether it is in another user's home. A program that
// only changes the user leaves HOME as it was, and that home may be unreadable for this process.
func isNone(e *console.Env, path string, err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && path != systemConfig && !isOwn(e.Getenv("HOME"))
}

// configFiles returns the files to read, the one with the highest priority last.
func configFiles(e *console.Env) []string {
	switch path := e.Getenv(EnvConfig); path {
	case noConfig:
		return nil
	case "":
	default:
		return []string{path}
	}
	files := []string{systemConfig}
	if dir := e.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return append(files, filepath.Join(dir, userConfig))
	}
	if home := e.Getenv("HOME"); filepath.IsAbs(home) {
		return append(files, filepath.Join(home, ".config", userConfig))
	}
	return files
}

// readConfigFile reads a file that no other user can have written: it decides where locks live, which
// prevent a second run, and which users are trusted.
func readConfigFile(path string, isNamed bool) (string, error) {
	f, err := openConfig(path, isNamed)
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := checkConfigOwner(info); err != nil {
		return "", fmt.Errorf("%w; mend that, or leave it out with %s=%s", err, EnvConfig, noConfig)
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return "", fmt.Errorf("it is no file of at most %d KB", maxConfig>>10)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	return string(text), err
}

// openConfig opens a file in the user's home with as few requests as possible. A file that is named may
// be a link that another user put there, so Peek opens it.
func openConfig(path string, isNamed bool) (*os.File, error) {
	if isNamed {
		return outfile.Peek(path)
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// add overrides earlier settings with those of a file. dir and source are two forms of the same
// setting.
func (c *config) add(path, text string) error {
	var said configFile
	found, err := toml.Decode(text, &said)
	if err != nil {
		var wrong toml.ParseError
		if errors.As(err, &wrong) {
			return fmt.Errorf("line %d: %s", wrong.Position.Line, wrong.Message)
		}
		return err
	}
	for _, key := range found.Keys() { // the library takes DIR for dir, too, and one of both where both are there
		if !slices.Contains(knownKeys, key.String()) {
			return fmt.Errorf("%q is unknown; there are %s", key.String(), known())
		}
	}
	if err := said.check(); err != nil {
		return err
	}
	if said.Dir != "" || said.Source != "" {
		c.Dir, c.Source = chosen{}, chosen{}
	}
	for _, one := range []struct {
		to    *chosen
		value string
	}{{&c.Dir, said.Dir}, {&c.Source, said.Source}, {&c.Group, said.Group}, {&c.Trust, said.Trust}, {&c.TTL, said.TTL}} {
		if one.value != "" {
			*one.to = chosen{one.value, path}
		}
	}
	if found.IsDefined("local") {
		c.Local = chosen{fmt.Sprint(said.Local), path}
	}
	if found.IsDefined("require_shared") {
		c.RequireShared = chosen{fmt.Sprint(said.RequireShared), path}
	}
	if found.IsDefined("capture") {
		c.Capture = chosen{fmt.Sprint(said.Capture), path}
	}
	if said.CaptureKeep > 0 {
		c.CaptureKeep = chosen{fmt.Sprint(said.CaptureKeep), path}
	}
	if said.CaptureSize != "" {
		c.CaptureSize = chosen{said.CaptureSize, path}
	}
	return nil
}

func (f *configFile) check() error {
	a, isURL := parseAddress(f.Source)
	switch {
	case f.Dir != "" && f.Source != "":
		return errors.New("dir and source contradict each other: dir = DIRECTORY stands for source = file:DIRECTORY; leave one of them out")
	case f.Dir != "" && !filepath.IsAbs(f.Dir):
		return fmt.Errorf("dir = %q: write the whole path, which means the same wherever a command starts", f.Dir)
	case isURL && a.scheme != fileScheme && a.hasSecrets():
		return errors.New("source has a secret in it; leave it out there, and put it into the variable " + EnvPassword + ", or into a file that " + EnvPasswordFile + " names")
	}
	capture := Capture{Keep: f.CaptureKeep}
	if f.CaptureSize != "" {
		if err := capture.Size.Set(f.CaptureSize); err != nil {
			return fmt.Errorf("capture_size: %w", err)
		}
	}
	if err := capture.Check(); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	if f.TTL == "" {
		return nil
	}
	if ttl, err := span.Parse(f.TTL); err != nil || ttl == 0 {
		return fmt.Errorf("ttl: %w", cmp.Or(err, errors.New("must not be 0")))
	}
	return nil
}
