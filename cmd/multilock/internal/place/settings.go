package place

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// The variables with values of options.
const (
	EnvDir           = "MULTILOCK_DIR"
	EnvGroup         = "MULTILOCK_GROUP"
	EnvSource        = "MULTILOCK_SOURCE"
	EnvLegacyPeers   = "MULTILOCK_LEGACY_PEERS"
	EnvTrust         = "MULTILOCK_TRUST"
	EnvLocal         = "MULTILOCK_LOCAL"          // locks are for one host
	EnvRequireShared = "MULTILOCK_REQUIRE_SHARED" // reject a directory that doctor --mark has not marked
)

// Asked are the values from the command line; nil if not given.
type Asked struct {
	Dir, Source, Group, Name, Trust *string
	LegacyPeers, RequireShared      *bool
}

// settings are the effective values, each with its origin. The command line overrides the environment,
// and both override the configuration files.
type settings struct {
	source                            chosen // a directory or a URL
	isDir                             bool
	group, trust, ttl                 chosen
	local, requireShared, legacyPeers chosen

	capture, captureKeep, captureSize chosen
}

// chosen is a value and its origin: an option, a variable with its $, a file, or "built in". The
// value is "" if it is not set.
type chosen struct{ value, from string }

const builtIn = "built in"

// gather reads all settings.
func gather(a Asked, e *console.Env) (s settings, err error) {
	c, err := readConfig(e)
	if err != nil {
		return s, err
	}
	if a.Dir != nil && a.Source != nil {
		return s, errors.New("-d and --source contradict each other: -d DIRECTORY stands for --source file:DIRECTORY; leave one of them out")
	}
	variable := func(name string) chosen { return chosen{e.Getenv(name), "$" + name} }
	s = settings{
		source:        first(option("--source", a.Source), option("--dir", a.Dir), variable(EnvSource), variable(EnvDir), c.Source, c.Dir),
		group:         first(option("--group", a.Group), variable(EnvGroup), c.Group),
		trust:         first(option("--trust", a.Trust), variable(EnvTrust), c.Trust),
		ttl:           c.TTL,
		local:         first(variable(EnvLocal), c.Local),
		requireShared: first(toggle("--require-shared", a.RequireShared), variable(EnvRequireShared), c.RequireShared),
		legacyPeers:   first(toggle("--legacy-peers", a.LegacyPeers), variable(EnvLegacyPeers)),
		capture:       c.Capture, captureKeep: c.CaptureKeep, captureSize: c.CaptureSize,
	}
	s.isDir = s.source.from == "--dir" || s.source.from == "$"+EnvDir || s.source == c.Dir
	return s, nil
}

func option(name string, value *string) chosen {
	if value == nil {
		return chosen{}
	}
	return chosen{*value, name}
}

func toggle(name string, value *bool) chosen {
	if value == nil {
		return chosen{}
	}
	return chosen{strconv.FormatBool(*value), name}
}

// first returns the first value that is set.
func first(from ...chosen) chosen {
	for _, c := range from {
		if c.value != "" {
			return c
		}
	}
	return chosen{"", builtIn}
}

// typed reports whether the value was given on the command line. The environment and the files may
// be meant for other sources.
func (c chosen) typed() bool { return strings.HasPrefix(c.from, "--") }

// isOn parses a switch.
func (c chosen) isOn() (bool, error) {
	if c.value == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(c.value)
	if err != nil {
		return false, fmt.Errorf("%s=%q: write 1 or 0", strings.TrimPrefix(c.from, "$"), c.value)
	}
	return on, nil
}

// Setting is one of the effective settings.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`  // "" if not set
	From  string `json:"origin"` // an option, a variable with its $, a file, or "built in"
}

// Settings returns the settings that would apply to a command, and the paths of configuration files.
func (k Kinds) Settings(a Asked, e *console.Env) (all []Setting, files []string, err error) {
	s, err := gather(a, e)
	if err != nil {
		return nil, nil, err
	}
	s.source.value = publicURL(s.source.value)
	for _, one := range []struct {
		name string
		chosen
	}{
		{"source", s.source}, {"group", s.group}, {"ttl", first(s.ttl, chosen{"2m", builtIn})}, {"trust", s.trust}, {"local", s.local}, {"require_shared", s.requireShared},
		{"capture", s.capture}, {"capture_keep", first(s.captureKeep, chosen{strconv.Itoa(UsualCapture.Keep), builtIn})},
		{"capture_size", first(s.captureSize, chosen{UsualCapture.Size.String(), builtIn})},
	} {
		all = append(all, Setting{one.name, one.value, cmp.Or(one.from, builtIn)})
	}
	return all, configFiles(e), nil
}
