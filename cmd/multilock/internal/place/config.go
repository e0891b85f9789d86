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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/internal/span"
)

// EnvConfig names the one file that is read in place of the two below; with "none", none is.
const EnvConfig = "MULTILOCK_CONFIG"

const (
	noConfig     = "none"
	systemConfig = "/etc/multilock.conf"
	userConfig   = "multilock/config" // below XDG_CONFIG_HOME, which is ~/.config
	maxConfig    = 64 << 10
)

// config is what files say of where locks live. What the user's says counts before what the
// system's says, and the environment and the command line before both.
type config struct {
	Dir, Source, Group, Trust, TTL chosen
	Local, RequireShared           chosen
}

// chosen is a value, and the file that it is from; both are "" if no file says it.
type chosen struct{ value, from string }

// configFile is how a file is written: TOML.
type configFile struct {
	Dir    string `toml:"dir"`
	Source string `toml:"source"`
	Group  string `toml:"group"`
	Trust  string `toml:"trust"`
	TTL    string `toml:"ttl"`
	Local  bool   `toml:"local"`

	RequireShared bool `toml:"require_shared"`
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

// isNone says that there is no such file, or that it is in the home of somebody else: who
// changes only the user leaves HOME as it was, and that home may be closed to us.
func isNone(e *console.Env, path string, err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && path != systemConfig && !isOwn(e.Getenv("HOME"))
}

// configFiles are the files to be read, the one that counts most last.
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

// readConfigFile reads a file that nobody else can have written: what is in it says where a
// job is kept from running twice, and whom to believe.
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

// openConfig asks a file server for no more than it must of a file in the user's home. Others
// may have put a link where a file that is named should be.
func openConfig(path string, isNamed bool) (*os.File, error) {
	if isNamed {
		return outfile.Peek(path)
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// add takes what a file says in place of what was there. Its dir and its source are two ways
// to say the same.
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
	known := []string{"dir", "source", "group", "ttl", "trust", "local", "require_shared"}
	for _, key := range found.Keys() { // the library takes DIR for dir, too, and one of both where both are there
		if !slices.Contains(known, key.String()) {
			return fmt.Errorf("%q is unknown; there are dir, source, group, ttl, trust, local and require_shared", key.String())
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
	if f.TTL == "" {
		return nil
	}
	if ttl, err := span.Parse(f.TTL); err != nil || ttl == 0 {
		return fmt.Errorf("ttl: %w", cmp.Or(err, errors.New("must not be 0")))
	}
	return nil
}

// apply fills in what neither the command line nor the environment says.
func (c *config) apply(p *Place) {
	p.Group, p.Trust = cmp.Or(p.Group, c.Group.value), cmp.Or(p.Trust, c.Trust.value)
	p.Local = p.Local || c.Local.value == "true"
	if c.TTL.value != "" {
		p.TTL, _ = span.Parse(c.TTL.value) // it was checked
	}
}

// Setting is one of the settings that apply, and whence it is.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // "" if nothing says it
	From  string `json:"from"`  // an option, a variable with its $, a file, or "built in"
}

// Settings are those that a command would have here, and the files that are looked for.
func (k Kinds) Settings(a Asked, e *console.Env) (all []Setting, files []string, err error) {
	c, err := readConfig(e)
	if err != nil {
		return nil, nil, err
	}
	source := first("source", said(a.Source, "--source"), said(a.Dir, "--dir"), variable(e, EnvSource), variable(e, EnvDir), c.Source, c.Dir)
	source.Value = publicURL(source.Value)
	local := first("local", variable(e, EnvLocal), c.Local)
	ttl := first("ttl", c.TTL, chosen{"2m", builtIn})
	return []Setting{
		source,
		first("group", said(a.Group, "--group"), variable(e, EnvGroup), c.Group),
		ttl,
		first("trust", said(a.Trust, "--trust"), variable(e, EnvTrust), c.Trust),
		local,
		first("require_shared", saidBool(a.RequireShared, "--require-shared"), variable(e, EnvRequireShared), c.RequireShared),
	}, configFiles(e), nil
}

const builtIn = "built in"

func said(value *string, option string) chosen {
	if value == nil {
		return chosen{}
	}
	return chosen{*value, option}
}

func saidBool(value *bool, option string) chosen {
	if value == nil {
		return chosen{}
	}
	return chosen{strconv.FormatBool(*value), option}
}

func variable(e *console.Env, name string) chosen {
	return chosen{e.Getenv(name), "$" + name}
}

// first is the first of these that says something.
func first(name string, from ...chosen) Setting {
	for _, one := range from {
		if one.value != "" {
			return Setting{name, one.value, one.from}
		}
	}
	return Setting{name, "", builtIn}
}

// UsualTTL is for a lock whose ttl is not given; zero is for the source's own.
func (p *Place) UsualTTL() time.Duration {
	if strings.HasPrefix(p.scheme(), "cook+") {
		return 0
	}
	return p.TTL
}
