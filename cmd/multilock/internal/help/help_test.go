package help_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/help"
)

func TestProgramIsOneScreen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{help.Program(), help.First()} {
		require.LessOrEqual(t, strings.Count(text, "\n"), 23)
		requireNarrow(t, "program", text, 80)
	}
}

func requireNarrow(t *testing.T, file, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, len(line), columns, "%s: %s", file, line)
		require.Equal(t, strings.TrimRight(line, " "), line, file)
		require.NotContains(t, line, "\t", file)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	require.Subset(t, help.Topics(), []string{"batch", "environment", "exit-codes", "locks", "run", "schedule"})
	for _, topic := range help.Topics() {
		text := help.Topic(topic)
		requireNarrow(t, topic, text, 100)
		for _, doc := range regexp.MustCompile(`docs/[a-z/]+\.md`).FindAllString(text, -1) {
			require.FileExists(t, filepath.Join("../../../..", doc))
		}
	}
	require.Regexp(t, `(?m)^ +121  held`, help.Topic("exit-codes"))
	require.NotContains(t, help.Topic("exit-codes"), "CODES\n")
	require.Empty(t, help.Topic("no-such-topic"))
}

// Every variable that the program reads is listed, and no other.
func TestEnvironmentIsComplete(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`MULTILOCK_[A-Z_]*[A-Z]`)
	known := map[string]bool{}
	for _, root := range []string{"../..", "../../../../multilock/process"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "clitest") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range variable.FindAllString(string(text), -1) {
				known[name] = true
			}
			return err
		}))
	}
	listed := map[string]bool{}
	for _, name := range variable.FindAllString(help.Topic("environment"), -1) {
		listed[name] = true
	}
	require.Greater(t, len(known), 15)
	require.Equal(t, slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(listed)))
}
