package load

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits of a cgroup and its ancestors count, instead of the host's memory.
func TestMemoryOfACgroup(t *testing.T) {
	host := Memory{Total: 1000, Available: 800}
	for name, c := range map[string]struct {
		files map[string]string
		want  Memory
	}{
		"none":                          {nil, host},
		"without a limit":               {map[string]string{"a/b/memory.max": "max\n", "a/b/memory.current": "10\n"}, host},
		"its own":                       {map[string]string{"a/b/memory.max": "500\n", "a/b/memory.current": "100\n"}, Memory{500, 400}},
		"inactive files":                {map[string]string{"a/b/memory.max": "500\n", "a/b/memory.current": "300\n", "a/b/memory.stat": "anon 9\ninactive_file 200\n"}, Memory{500, 400}},
		"of the one above":              {map[string]string{"a/memory.max": "500\n", "a/memory.current": "450\n", "a/b/memory.max": "600\n", "a/b/memory.current": "0\n"}, Memory{500, 50}},
		"of the one on top":             {map[string]string{"memory.max": "300\n", "memory.current": "100\n"}, Memory{300, 200}},
		"more than the host has":        {map[string]string{"a/b/memory.max": "5000\n", "a/b/memory.current": "100\n"}, host},
		"over its limit":                {map[string]string{"a/b/memory.max": "500\n", "a/b/memory.current": "501\n"}, Memory{500, 0}},
		"unreadable":                    {map[string]string{"a/b/memory.max": "5x\n", "a/b/memory.current": "501\n"}, host},
		"a sibling's does not count":    {map[string]string{"a/c/memory.max": "500\n", "a/c/memory.current": "100\n"}, host},
		"more cache than it has in all": {map[string]string{"a/b/memory.max": "500\n", "a/b/memory.current": "1\n", "a/b/memory.stat": "inactive_file 200\n"}, Memory{500, 500}},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Join(top, filepath.Dir(file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(top, file), []byte(text), 0o600))
			}
			require.Equal(t, c.want, confined(host, top, "/a/b"))
		})
	}
	require.Equal(t, host, confined(host, t.TempDir(), ""), "this process is in no cgroup")
}
