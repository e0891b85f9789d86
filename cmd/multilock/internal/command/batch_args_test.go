//go:build unix

package command

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func commandsOf(t *testing.T, args ...string) (commands []string) {
	t.Helper()
	list, err := listOfArgs(args)
	require.NoError(t, err)
	list.nameByNumber(0)
	for _, job := range list.jobs {
		commands = append(commands, job.Name+" "+job.Command)
	}
	return commands
}

func TestListOfArgs(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"1 convert a.png", "2 convert 'b c.png'"}, commandsOf(t, "convert {}", ":::", "a.png", "b c.png"))
	require.Equal(t, []string{"1 gzip -9 a"}, commandsOf(t, "gzip", "-9", ":::", "a"))
	require.Equal(t, []string{"1 x a 1 a 1", "2 x a 2 a 2", "3 x b 1 b 3", "4 x b 2 b 4"}, commandsOf(t, "x {} {1} {#}", ":::", "a", "b", ":::", "1", "2"))
	require.Equal(t, []string{"1 echo '{}' '{#}'"}, commandsOf(t, "echo {1} {2}", ":::", "{}", ":::", "{#}"))
	for _, wrong := range [][]string{{":::", "a"}, {"x", ":::"}, {"x", ":::", "a", ":::"}, {" ", ":::", "a"}} {
		_, err := listOfArgs(wrong)
		require.Error(t, err, "%q", wrong)
	}
}

// Whatever a value is, the shell gets it as one word, and runs nothing in it.
func TestArgsAreQuoted(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", " ", "a b", "it's", `"$HOME"`, "$(touch x)", "`id`", "a\nb", ";rm -rf /", "*", "~", "\\", "-n", "{}", "\x9b\xff", "é☃", "a&b|c>d", "'", "''", "#"} {
		list, err := listOfArgs([]string{"printf '<%s>' {}", ":::", value})
		require.NoError(t, err)
		out, err := exec.Command("sh", "-c", list.jobs[0].Command).Output()
		require.NoError(t, err)
		require.Equal(t, "<"+value+">", string(out), "%s", list.jobs[0].Command)
	}
}
