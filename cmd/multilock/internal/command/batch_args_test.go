//go:build unix

package command

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed returns an argList that reads these lines from files.
func listed(files map[string]string) argList {
	return argList{read: func(file string) ([]string, error) {
		text, there := files[file]
		if !there {
			return nil, fmt.Errorf("no such file: %s", file)
		}
		return strings.Split(text, "\n"), nil
	}}
}

func commandsOf(t *testing.T, a argList, args ...string) (commands []string) {
	t.Helper()
	list, err := a.jobs(args)
	require.NoError(t, err)
	for _, job := range list.jobs {
		commands = append(commands, job.Command)
	}
	return commands
}

// The jobs are the same as with --dry-run of GNU parallel 20221122, except that all values are quoted.
func TestListOfArgs(t *testing.T) {
	t.Parallel()
	files := listed(map[string]string{"gifs": "a/b.gif\nc d.tar.gz", "table": "x\t1\ny\t2", "named": "img\tw\na\t64\nb\t128"})
	tabs, header := files, files
	tabs.colsep = regexp.MustCompile(`\t`)
	header.colsep, header.header = tabs.colsep, true
	with := files
	with.files = []string{"gifs"}
	for _, c := range []struct {
		a    argList
		args string
		want string
	}{
		{files, "convert {}|:::|a.png|b c.png", "convert a.png|convert 'b c.png'"},
		{files, "gzip|-9|:::|a", "gzip -9 a"},
		{files, "x {} {1} {#}/{##}|:::|a|b|:::|1|2", "x a 1 a 1/4|x a 2 a 2/4|x b 1 b 3/4|x b 2 b 4/4"},
		{files, "echo {1} {2}|:::|{}|:::|{#}", "echo '{}' '{#}'"},
		{files, "{.} {/} {//} {/.}|::::|gifs", "a/b b.gif a b|'c d.tar' 'c d.tar.gz' . 'c d.tar'"},
		{files, "{2.}-{-2/}|:::|d/e.f|:::|g.h", "g-e.f"},
		{files, "{.}|:::|.bashrc|a.b/c|x.", "''|a.b/c|x"},
		{files, "x|:::|a|b|:::+|1|2|:::|p|q", "x a 1 p|x a 1 q|x b 2 p|x b 2 q"},
		{files, "x|:::|1|2|::::+|gifs", "x 1 a/b.gif|x 2 'c d.tar.gz'"},
		{tabs, "{2} {1}|::::|table", "1 x|2 y"},
		{tabs, "{2} {1} {3}|::::|table|:::|z", "1 x z|2 y z"},
		{header, "resize {img.} {w} {1}|::::|named", "resize a 64 a|resize b 128 b"},
		{with, "ls {/}", "ls b.gif|ls 'c d.tar.gz'"},
		{with, "ls {2} {1/}|:::|-l", "ls -l b.gif|ls -l 'c d.tar.gz'"},
		{files, "awk '{print $1}' ${HOME}/{a,b} {}|:::|x", "awk '{print $1}' ${HOME}/{a,b} x"},
	} {
		require.Equal(t, strings.Split(c.want, "|"), commandsOf(t, c.a, strings.Split(c.args, "|")...), c.args)
	}
}

// Unsupported replacement strings are rejected, and never passed through.
func TestListOfArgsRefuses(t *testing.T) {
	t.Parallel()
	files := listed(map[string]string{"empty": "", "ragged": "a\tb\nc"})
	files.colsep = regexp.MustCompile(`\t`)
	for args, why := range map[string]string{
		":::|a":                "write the command before the values",
		" |:::|a":              "write the command before the values",
		"x|:::":                "no values after :::",
		"x|:::|a|:::":          "no values after :::",
		"x|:::+|a":             "there is no list before it",
		"x|:::|a|b|:::+|1":     "have 2 and 1 values",
		"x {3}|:::|a|:::|b":    "{3}: each job has 2 values",
		"x {0}|:::|a":          "{0}: each job has 1 value",
		"x {%}|:::|a":          "MULTILOCK_SLOT",
		"x {= s/a/b/ =}|:::|a": "{= s/a/b/ =} of GNU parallel is not supported",
		"x {..}|:::|a":         "{..} of GNU parallel is not supported",
		"x {1+/}|:::|a":        "{1+/} of GNU parallel is not supported",
		"x|::::|missing":       "no such file",
		"x|::::|ragged":        "value 2, c, has 1 column",
	} {
		_, err := files.jobs(strings.Split(args, "|"))
		require.ErrorContains(t, err, why, args)
	}
}

// The shell receives any value as one word, and runs nothing in it.
func TestArgsAreQuoted(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", " ", "a b", "it's", `"$HOME"`, "$(touch x)", "`id`", "a\nb", ";rm -rf /", "*", "~", "\\", "-n", "{}", "\x9b\xff", "é☃", "a&b|c>d", "'", "''", "#"} {
		list, err := argList{}.jobs([]string{"printf '<%s>' {}", ":::", value})
		require.NoError(t, err)
		out, err := exec.Command("sh", "-c", list.jobs[0].Command).Output()
		require.NoError(t, err)
		require.Equal(t, "<"+value+">", string(out), "%s", list.jobs[0].Command)
	}
}
