//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// configured runs the binary with a home directory, and with only the given variables.
func (s *station) configured(home string, vars []string, words ...string) ended {
	s.t.Helper()
	cmd := s.command(words...)
	cmd.Env = append(append(clitest.Environ(), "HOME="+home, "XDG_CONFIG_HOME="), vars...)
	return s.finish(cmd)
}

func writeConfig(t *testing.T, home, text string) string {
	t.Helper()
	path := filepath.Join(home, ".config", "multilock", "config")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The file applies if neither an option nor a variable is given.
func TestConfigIsTheLastToBeAsked(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	home, other := t.TempDir(), t.TempDir()
	path := writeConfig(t, home, "dir = \""+s.base+"\" # ours\ngroup = \"G\"\nttl = \"7m\"\n")
	require.Equal(t, "G\n", s.configured(home, nil, "run", "-n", "x", "--", "sh", "-c", "echo $MULTILOCK_GROUP").stdout)
	require.DirExists(t, filepath.Join(s.base, ".multilock", "groups", "G"))
	require.Equal(t, "H\n", s.configured(home, []string{"MULTILOCK_GROUP=H"}, "run", "--", "sh", "-c", "echo $MULTILOCK_GROUP").stdout)
	require.Equal(t, "I\n", s.configured(home, []string{"MULTILOCK_GROUP=H"}, "run", "-g", "I", "--", "sh", "-c", "echo $MULTILOCK_GROUP").stdout)
	require.Zero(t, s.configured(home, nil, "-d", other, "run", "--", "true").code)
	require.DirExists(t, filepath.Join(other, ".multilock"))

	got := s.configured(home, nil, "acquire", "y", "--detach", "--ttl", "3m")
	require.Zero(t, got.code, got.stderr)
	ttls := s.configured(home, nil, "run", "-n", "z", "--", "multilock", "status", "--json")
	byName := map[string]float64{}
	for _, l := range clitest.Locks(t, ttls.stdout) {
		byName[l.Name] = l.TTL
	}
	require.Equal(t, map[string]float64{"y": 180, "z": 420}, byName)

	var report struct {
		Settings []struct{ Name, Value, Origin string }
		Files    []string
	}
	got = s.configured(home, []string{"MULTILOCK_TRUST=root"}, "config", "--json", "-g", "I")
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), got.stderr)
	from := map[string]string{}
	for _, one := range report.Settings {
		from[one.Name] = one.Value + " " + one.Origin
	}
	require.Equal(t, map[string]string{
		"source": s.base + " " + path, "group": "I --group", "ttl": "7m " + path, "trust": "root $MULTILOCK_TRUST", "local": "1 $MULTILOCK_LOCAL", "require_shared": " built in",
		"capture": " built in", "capture_keep": "20 built in", "capture_size": "64M built in",
	}, from)
	require.Equal(t, []string{"/etc/multilock.conf", path}, report.Files)
	require.Regexp(t, `(?m)^source +`+s.base+` +`+path+`$`, s.configured(home, nil, "config").stdout)
	require.Contains(t, s.configured(home, []string{"MULTILOCK_CONFIG=none"}, "run", "--", "true").stderr, "no lock directory")
}

// A batch needs a group, which may come from a file or a variable as well as from an option.
func TestBatchNeedsAGroup(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	dir, list := "MULTILOCK_DIR="+s.base, s.list("true")
	refused := s.configured(t.TempDir(), []string{dir}, "batch", list)
	require.Equal(t, 125, refused.code)
	require.Equal(t, "multilock: batch: a group has one list of jobs: name it with -g GROUP, one for each list\n", refused.stderr)
	s.requireUntouched()

	home := t.TempDir()
	require.Zero(t, s.configured(home, []string{dir, "MULTILOCK_GROUP=G"}, "batch", "-q", list).code)
	writeConfig(t, home, "group = \"H\"\n")
	require.Zero(t, s.configured(home, []string{dir}, "batch", "-q", list).code)
}

// If the file is invalid, or other users can write it, no lock is acquired elsewhere.
func TestConfigThatIsRefused(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for text, want := range map[string]string{
		"dri = \"/x\"":                       `"dri" is unknown; there are dir, source, group, ttl, trust, local, require_shared, capture, capture_keep and capture_size`,
		"dir = /x":                           "line 1: ",
		"dir = \"x\"":                        "write the whole path",
		"dir = \"\\u0000":                    "line 1: ",
		"dir = \"/x\"\nsource = \"file:/x\"": "dir and source contradict each other",
		"source = \"mongodb://ada:secret@h/d.c\"": "there is a secret in it",
		"ttl = \"soon\"":       `ttl: invalid duration "soon"`,
		"ttl = \"0\"":          "ttl: must not be 0",
		"source = \"bogus:x\"": "unknown kind of source",
	} {
		home := t.TempDir()
		path := writeConfig(t, home, text)
		if want == "there is a secret in it" {
			want = "source has a secret in it"
		}
		got := s.configured(home, nil, "run", "--", "true")
		require.Equal(t, 125, got.code, text)
		require.Contains(t, got.stderr, want)
		require.Contains(t, got.stderr, path)
		require.NotContains(t, got.stderr, "secret@")
	}
	home := t.TempDir()
	path := writeConfig(t, home, "dir = \""+s.base+"\"\n")
	require.NoError(t, os.Chmod(path, 0o666))
	got := s.configured(home, nil, "run", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "others may write to it (mode 0666; chmod go-w); mend that, or leave it out with MULTILOCK_CONFIG=none")
	require.NoError(t, os.Chmod(path, 0o620))
	require.Contains(t, s.configured(home, nil, "run", "--", "true").stderr, "others may write to it (mode 0620", "a group can be anybody")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(path, 0o600))
		require.NoError(t, os.Chown(path, 4711, 4711))
		require.Contains(t, s.configured(home, nil, "run", "--", "true").stderr, "it belongs to user 4711, which this user (0) does not trust")
	}
	require.Equal(t, 125, s.configured(t.TempDir(), []string{"MULTILOCK_CONFIG=" + s.base + "/absent"}, "run", "--", "true").code, "it was named")
	s.requireUntouched()
}
