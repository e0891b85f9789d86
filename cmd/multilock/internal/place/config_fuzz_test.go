package place

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/span"
)

// A configuration file has one meaning, and nothing in it is ignored: the settings are exactly its keys,
// also after it is encoded and decoded again.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"", "# nothing\n", "dir = \"/shared\" # ours\r\ngroup = \"G\"\r\nttl = \"7m\"\r\n", "source = \"etcd://u@h/p\"\ntrust = \"ada,bob\"\nlocal = true\nrequire_shared = false\n",
		"dir = \"/a\"\nsource = \"file:/b\"\n", "dir = \"a\"\n", "source = \"etcd://u:secret@h/p\"\n", "ttl = \"0\"\n", "ttl = 5\n", "dir = '/a'\nDIR = '/b'\n", "Group = \"g\"\n",
		"dir = \"/a\"\ndir = \"/b\"\n", "\"dir\" = \"/a\"\n", "[dir]\nx = 1\n", "group = \"\"\n", "group = \"\\u0000\\n\"\n", "group = '''\na\nb'''\n", "\ufeffgroup = \"g\"\n", "password = \"x\"\n", "capture = true\ncapture_keep = 30\ncapture_size = \"1G\"\n", "capture_size = \"1\"\n", "capture_keep = -1\n", "local = \"true\"\n", "group = \"\xff\"\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c config
		if err := c.add("there", text); err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		var keys map[string]any
		_, err := toml.Decode(text, &keys)
		require.NoError(t, err)
		of := map[string]chosen{"dir": c.Dir, "source": c.Source, "group": c.Group, "trust": c.Trust, "ttl": c.TTL, "local": c.Local, "require_shared": c.RequireShared,
			"capture": c.Capture, "capture_keep": c.CaptureKeep, "capture_size": c.CaptureSize,
		}
		for key, value := range keys {
			require.Contains(t, of, key)
			switch value := value.(type) {
			case string:
				require.Equal(t, value, of[key].value)
			case int64:
				require.Equal(t, value > 0, of[key].value == fmt.Sprint(value))
			default:
				require.Equal(t, value, of[key].value == "true")
			}
		}
		require.False(t, c.Dir.value != "" && c.Source.value != "")
		require.True(t, c.Dir.value == "" || filepath.IsAbs(c.Dir.value))
		if c.TTL.value != "" {
			ttl, err := span.Parse(c.TTL.value)
			require.NoError(t, err)
			require.Positive(t, ttl)
		}
		var anew strings.Builder
		require.NoError(t, toml.NewEncoder(&anew).Encode(keys))
		var again config
		require.NoError(t, again.add("there", anew.String()))
		require.Equal(t, c, again)
		require.NoError(t, again.add("there", text), "as of a user's file that says what the system's does")
		require.Equal(t, c, again)
	})
}
