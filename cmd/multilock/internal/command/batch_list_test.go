//go:build unix

package command

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/lockgroup/batch"
)

func listIn(t *testing.T, text string, null bool) (batchList, error) {
	t.Helper()
	parse := parseLines
	if null {
		parse = parsePairs
	}
	list, err := parse(strings.NewReader(text), "there", listNeeds{})
	if err != nil {
		return list, err
	}
	return list, (&batchOptions{}).nameList(t.Context(), &place.Source{}, &list)
}

// Each job of an accepted list has a unique name and a command, in the order of the lines. A list has one
// meaning: if it is rewritten, it is the same, even with byte order marks and line endings of Windows, and
// "wait" reads the same names from it.
func FuzzBatchList(f *testing.F) {
	for _, list := range []string{
		"make a\nmake b\n", "a\tmake a\r\nb\tmake b\n", "# no job\n\n \n", "a\tx\na\ty\n", "a\t\n", "\tx\n", "x\x00y\n", "a\tx\n1\n2\n", "a\x00\x00b", "\x00x y\n\x00b\x00\x00", "\xef\xbb\xbfx\r\ny", "\xff\xfex\x00", "x\ry\n", strings.Repeat("true\n", 11), "BARRIER\na\tx\nBARRIER\nBARRIER\r\nBARRIER\ty\n BARRIER\nBARRIER\n", "2\ttrue\ntrue\n",
		"NEEDS\na\tx\nNEEDS cpus=2\nNEEDS cpus=4 mem=1.5G\r\nb\tx\nNEEDS mem=7\n", "NEEDS cpu=2\na\tx\n", "NEEDS\tx\n NEEDS cpus=2\nNEEDS cpus=2\tx\n",
		"SHELL bash -o pipefail\na\tx\n", "SHELL sh\r\nx\r\n", "SHELL bash\nSHELL bash\nx\n", "x\nSHELL bash\n", "SHELL\tx\n SHELL y\n", "SHELL \tx\n", "SHELL 'a b'\nx\n", "\ufeffSHELL bash\r\n\r\nx\r\n",
		"\ufeff\ufeffa\tx\n", "\ufeff\ufeff", "\ufeff# a\nx\r\n", "a\tx\r\r\n", "a\x00x\ry\r\n\x00b\x00\ufeff\x00", "\x00x\x002\x00y\x00", "\ufeffa\x00x\x00", "a\tx\ty\n\xff\tz\n", "BARRIER\n\n", "0\nBARRIER", "a \tx\n", "\u00a0\nx\n", "\v\f# y\nx\n",
	} {
		f.Add(list, false)
		f.Add(list, true)
	}
	f.Fuzz(func(t *testing.T, text string, null bool) {
		members, unreadable := parseMembers(strings.NewReader(text), "there")
		if unreadable != nil {
			require.ErrorContains(t, unreadable, "there is UTF-")
		}
		for _, name := range members {
			require.NotEmpty(t, strings.TrimSpace(name))
			require.NotContains(t, name, "\n")
			require.NotContains(t, name, "\t")
		}
		list, err := listIn(t, text, null)
		if err != nil {
			require.ErrorContains(t, err, "there")
			return
		}
		require.NotEmpty(t, list.jobs)
		for i, after := range list.barriers {
			require.True(t, after > 0 && after < len(list.jobs) && (i == 0 || list.barriers[i-1] < after), list.barriers)
		}
		for i, n := range list.needs.needs {
			require.True(t, n.CPUs > 0 && n.Memory >= 0 && n.From <= len(list.jobs)+1 && (n.From == 1 || n.From > list.needs.needs[max(i, 1)-1].From || i == 0), list.needs)
		}
		names := map[string]bool{}
		for i, job := range list.jobs {
			require.False(t, names[job.Name])
			names[job.Name] = true
			require.NotEmpty(t, strings.TrimSpace(job.Command))
			require.True(t, null || !strings.ContainsAny(job.Command, "\r\n"))
			require.NotContains(t, job.Command, "\x00")
			require.True(t, i == 0 || list.line(i-1) < list.line(i))
		}
		if null {
			require.Equal(t, text, pairsOf(list))
			return
		}
		require.NoError(t, unreadable)
		words := wordsBeforeTabs(list)
		if slices.ContainsFunc(words, func(word string) bool { return strings.TrimSpace(word) == "" }) {
			return // a source would reject the name
		}
		require.Equal(t, words, members)
		plain := linesOf(list)
		for how, anew := range map[string]string{"plain": plain, "CR LF": strings.ReplaceAll(plain, "\n", "\r\n"), "a mark": bomUTF8 + plain} {
			again, err := listIn(t, anew, false)
			require.NoError(t, err, how)
			require.Equal(t, list.jobs, again.jobs, how)
			require.True(t, slices.Equal(list.barriers, again.barriers), how)
			require.Equal(t, list.shell, again.shell, how)
			require.True(t, slices.Equal(list.needs.needs, again.needs.needs), how)
		}
	})
}

// pairsOf formats a list for --null.
func pairsOf(list batchList) string {
	var text strings.Builder
	for i, job := range list.jobs {
		if list.lines[i] < 0 {
			text.WriteString(job.Name)
		}
		text.WriteString("\x00" + job.Command + "\x00")
	}
	return text.String()
}

// wordsBeforeTabs returns the lines of jobs up to their first tabs.
func wordsBeforeTabs(list batchList) (words []string) {
	for i, job := range list.jobs {
		if list.lines[i] < 0 {
			words = append(words, job.Name)
		} else {
			words = append(words, job.Command)
		}
	}
	return words
}

// linesOf formats a list, including the lines between its jobs.
func linesOf(list batchList) string {
	var text strings.Builder
	if list.shell.given {
		text.WriteString(shellLine + cmp.Or(list.shell.String(), "sh") + "\n")
	}
	for i := range len(list.jobs) + 1 {
		if slices.Contains(list.barriers, i) {
			text.WriteString(barrierLine + "\n")
		}
		for _, n := range list.needs.needs {
			if n.From == i+1 {
				fmt.Fprintf(&text, "%s cpus=%d", needsLine, n.CPUs)
				if n.Memory > 0 {
					fmt.Fprintf(&text, " mem=%d", n.Memory)
				}
				text.WriteByte('\n')
			}
		}
		switch {
		case i == len(list.jobs):
		case list.lines[i] < 0:
			text.WriteString(list.jobs[i].Name + "\t" + list.jobs[i].Command + "\n")
		default:
			text.WriteString(list.jobs[i].Command + "\n")
		}
	}
	return text.String()
}

func TestNeedsInAList(t *testing.T) {
	const text = "1st\tx\nNEEDS cpus=2\nNEEDS cpus=4 mem=1.5G\n2nd\tx\nNEEDS\tx\n4th\tx\nBARRIER\nNEEDS\n5th\tx\nNEEDS mem=7\n"
	list, err := listIn(t, text, false)
	require.NoError(t, err)
	require.Len(t, list.jobs, 5)
	require.Equal(t, []batch.Needs{{From: 2, CPUs: 4, Memory: 3 << 29}, {From: 5, CPUs: 1}, {From: 6, CPUs: 1, Memory: 7}}, list.needs.needs)
	require.Equal(t, []int{4}, list.barriers)
	for _, wrong := range []string{"NEEDS cpu=4", "NEEDS cpus=0", "NEEDS cpus=", "NEEDS mem=8X", "NEEDS 4", "NEEDS cpus=4\tx"} {
		_, err := listIn(t, "a\tx\n"+wrong+"\nb\tx\n", false)
		require.ErrorContains(t, err, "there: line 2: ", wrong)
		require.ErrorContains(t, err, "write NEEDS cpus=4 mem=8G", wrong)
	}
	members, err := parseMembers(strings.NewReader(text), "there")
	require.NoError(t, err)
	require.Equal(t, []string{"1st", "2nd", "NEEDS", "4th", "5th"}, members)
}

const bom = "\ufeff"

func utf16Of(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// What an editor or another system has added to a list is removed, with a remark. What could change a command
// is rejected, with the line and a correction.
func TestListsOfOtherSystems(t *testing.T) {
	t.Parallel()
	commands := func(list batchList) (all []string) {
		for _, job := range list.jobs {
			all = append(all, job.Name+":"+job.Command)
		}
		return all
	}
	for text, remark := range map[string]string{
		bom + "make a\nmake b\n":                 "it begins with a byte order mark",
		"make a\r\nmake b\r\n":                   "its lines end with CR LF",
		"make a\r\n# no CR here\n \n\t\nmake b":  "its lines end with CR LF",
		bom + "# the jobs\nmake a\nmake b\n":     "it begins with a byte order mark",
		"make a\n  # not a job\nmake b":          "",
		"\r\nmake a\r\n\n# some\n\r\nmake b\r\n": "its lines end with CR LF",
	} {
		list, err := listIn(t, text, false)
		require.NoError(t, err, "%q", text)
		require.Equal(t, []string{"1:make a", "2:make b"}, commands(list), "%q", text)
		if remark == "" {
			require.Empty(t, list.remarks)
			continue
		}
		require.Len(t, list.remarks, 1)
		require.Contains(t, list.remarks[0], remark)
		members, err := parseMembers(strings.NewReader(text), "there")
		require.NoError(t, err)
		require.Equal(t, []string{"make a", "make b"}, members, "%q", text)
	}
	for text, charset := range map[string]string{
		utf16Of(bom+"make a\n", binary.LittleEndian): "UTF-16",
		utf16Of(bom+"make a\n", binary.BigEndian):    "UTF-16",
		utf16Of("make a\n", binary.LittleEndian):     "UTF-16LE",
		utf16Of("make a\n", binary.BigEndian):        "UTF-16BE",
		"\xff\xfe\x00\x00m\x00\x00\x00":              "UTF-32",
		"\x00\x00\xfe\xff\x00\x00\x00m":              "UTF-32",
	} {
		_, err := listIn(t, text, false)
		require.ErrorContains(t, err, "there is "+charset+",")
		require.ErrorContains(t, err, "iconv -f "+charset+" -t UTF-8")
		_, err = parseMembers(strings.NewReader(text), "there")
		require.ErrorContains(t, err, "there is "+charset+",")
	}
}

func TestListsThatAreRefusedByLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", longestCommand())
	for text, why := range map[string][]string{
		"a\n\nb\r\nc\n":            {"line 3: it ends with a carriage return", "line 1 with a newline alone", `sed -i 's/\r$//'`, "dos2unix"},
		"a\r\nb\n":                 {"line 1: it ends with a carriage return", "line 2 with"},
		"a\r\nBARRIER\nb\r\n":      {"line 1: it ends with a carriage return", "line 2 with"},
		"a\nb\rc\n":                {"line 2: there is a carriage return (CR) within it", "--null"},
		"a\rb\rc\r":                {"line 1: there is a carriage return (CR) within it"},
		"a\n" + bom + "b\n":        {"line 2: it begins with a byte order mark (BOM)", `sed -i '2s/^\xef\xbb\xbf//' FILE`},
		bom + bom + "# a\nb\n":     {"line 1: it begins with a byte order mark"},
		"a\r\r\nb\r\n":             {"line 1: there is a carriage return (CR) within it"},
		"printf 'a\tb'\nmake b\n":  {"line 2: a list is NAME<TAB>COMMAND", "line 1 has a tab and line 2 has none", "--null"},
		"make a\nb\tmake b\n":      {"line 2: a list is NAME<TAB>COMMAND on each line, or a command alone on each"},
		"a\tmake a\n\nmake b\n":    {"line 3: a list is NAME<TAB>COMMAND"},
		"cut -d\"\t\" -f1 x\n":     {"line 1: the text before its first tab", "looks like a part of a command"},
		"a\tx\nb\t" + long + "x\n": {"line 2: the command has ", "write it into a script"},
	} {
		_, err := listIn(t, text, false)
		require.Error(t, err, "%q", text)
		for _, part := range why {
			require.ErrorContains(t, err, part)
		}
		require.Less(t, len(err.Error()), 1000)
	}
	list, err := listIn(t, "with space\tprintf 'a\tb'\nb\t"+long+"\n", false)
	require.NoError(t, err)
	require.Equal(t, []batch.Job{{Name: "with space", Command: "printf 'a\tb'"}, {Name: "b", Command: long}}, list.jobs)
	require.Equal(t, []string{"the text before a tab is the name of a job, and the name on line 1 has a space"}, list.remarks)
	_, err = argList{}.jobs([]string{"echo {} {}", ":::", "a", long[:len(long)/2]})
	require.ErrorContains(t, err, "the command of job 2 has ")
}

// With --null no byte in a name or a command has a special meaning.
func TestPairs(t *testing.T) {
	t.Parallel()
	list, err := listIn(t, "#1\x00#no comment\r\n\ttwo lines\r\x00\x00BARRIER\x00NEEDS cpus=9\x00\xef\xbb\xbf\xff\x00a\nb\x00x\x00", true)
	require.NoError(t, err)
	require.Equal(t, []batch.Job{
		{Name: "#1", Command: "#no comment\r\n\ttwo lines\r"}, {Name: "2", Command: "BARRIER"}, {Name: "NEEDS cpus=9", Command: "\ufeff\xff"}, {Name: "a\nb", Command: "x"},
	}, list.jobs)
	require.Empty(t, list.remarks)
	require.Empty(t, list.barriers)
	for text, why := range map[string]string{
		"":                             "there are no jobs in there",
		"a\x00x":                       "does not end with a NUL byte",
		"a\x00x\x00b\x00":              "has 3 fields, an odd number",
		"make a\nmake b\n":             "does not end with a NUL byte",
		"a\x00x\x00b\x00\x00":          `job 2: "b" has no command`,
		"a\x00x\x00a\x00y\x00":         `job 2: the name "a" is that of job 1`,
		"a\x00x\x00#jobs-1-2\x00y\x00": "", // rejected when the batch starts
	} {
		if _, err := listIn(t, text, true); why == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, why)
		}
	}
}
