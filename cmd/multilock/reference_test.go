//go:build unix

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

var updateReference = flag.Bool("update", false, "rewrite docs/reference from the texts of the help")

// requireReference compares a page of docs/reference with what it is made from, and rewrites it with -update.
func requireReference(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "reference", name)
	title, rest, _ := strings.Cut(text, "\n")
	text = title + "\n\n<!-- Made from the program. To make it anew: go test ./cmd/multilock -run Reference -update -->\n" + rest
	if *updateReference {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // a document
	}
	found, err := os.ReadFile(path) //nolint:gosec // ours
	require.NoError(t, err)
	require.Equal(t, text, string(found), "%s: make it with -update", path)
}

// docs/reference has the help of all commands, and all topics.
func TestReference(t *testing.T) {
	app := appForTests()
	var commands, topics strings.Builder
	commands.WriteString("# Commands and options\n\n`multilock COMMAND --help` prints the same. The [topics](topics.md) are about several commands.\n\n")
	named := func(c *cli.Command) bool { return c.Name == command.HelpCommand }
	documented := slices.DeleteFunc(app.VisibleCommands(), named)
	for _, each := range documented {
		fmt.Fprintf(&commands, "- [%s](#%s): %s\n", each.Name, each.Name, escaped(each.Usage))
	}
	commands.WriteString("\n## Options of all commands\n\nGive them before or after the command. A DURATION is `90s`, `5m`, `2h30m`, `1d`, or a number of seconds.\n" +
		described(options.Of(options.Program)))
	for _, each := range documented {
		fmt.Fprintf(&commands, "\n## %s\n\n    multilock %s\n\n%s", each.Name, strings.TrimSpace(each.Name+" "+each.ArgsUsage), markdown(each.Description))
		commands.WriteString(described(slices.DeleteFunc(options.Of(each.Name), func(o *options.Option) bool { return o.Common })))
		if more := help.Topic(each.Name); more != "" {
			commands.WriteString("\n" + markdown(more))
		}
		if also := help.About(each.Name); len(also) > 0 {
			commands.WriteString("\n" + folded("", "See also: "+strings.Join(linked(also, each.Name), ", ")))
		}
	}
	topics.WriteString("# Topics\n\n`multilock help TOPIC` prints the same.\n\n")
	all := slices.DeleteFunc(command.Topics(app), func(topic string) bool { return topic == "troubleshooting" }) // its page has more
	for _, topic := range all {
		fmt.Fprintf(&topics, "- [%s](#%s)\n", topic, topic)
	}
	for _, topic := range all {
		before, after, hasCodes := strings.Cut(help.Topic(topic), console.ExitTable)
		fmt.Fprintf(&topics, "\n## %s\n\n%s", topic, markdown(before))
		if hasCodes {
			topics.WriteString(exitCodes() + "\n### Use in scripts\n\n" + markdown(after))
		}
	}
	requireReference(t, "commands.md", commands.String())
	requireReference(t, "topics.md", topics.String())
}

// docs/reference has the errors of the Go and Python packages, from their comments.
func TestErrorsReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Errors of the Go and Python packages\n\nMessages are in [troubleshooting](../troubleshooting.md#by-message).\n")
	for _, each := range []struct{ dir, name string }{
		{"multilock", "multilock"}, {"lockgroup", "lockgroup"}, {"lockgroup/batch", "batch"},
	} {
		fmt.Fprintf(&b, "\n## Go: %s\n\n", each.name)
		files, err := filepath.Glob(filepath.Join("..", "..", each.dir, "*.go"))
		require.NoError(t, err)
		found := 0
		for _, path := range files {
			text, err := os.ReadFile(path) //nolint:gosec // ours
			require.NoError(t, err)
			for _, one := range goError.FindAllStringSubmatch(string(text), -1) {
				found++
				meaning := strings.Join(strings.Fields(strings.ReplaceAll(one[1], "//", "")), " ")
				require.Contains(t, meaning, one[2])
				b.WriteString(folded("  ", "- "+strings.Replace(escaped(meaning), one[2], "`"+one[2]+"`", 1)))
			}
		}
		require.NotZero(t, found, each.name)
	}
	b.WriteString("\n## Python\n\n")
	text, err := os.ReadFile(filepath.Join("..", "..", "scripts", "python", "multilock", "errors.py"))
	require.NoError(t, err)
	for _, one := range pythonError.FindAllStringSubmatch(string(text), -1) {
		b.WriteString(folded("  ", fmt.Sprintf("- `%s`: %s", one[1], escaped(strings.ReplaceAll(one[2], "``", "")))))
	}
	requireReference(t, "errors.md", b.String())
}

var (
	goError     = regexp.MustCompile(`(?m)((?:^\t?//.*\n)+)(?:var |\t)(Err[A-Z]\w+)\s+= `)
	pythonError = regexp.MustCompile(`(?m)^class (\w+)\(.*\):\n    """((?s:.*?))"""`)
)

// exitCodes returns the table of exit codes with a heading for each code.
func exitCodes() string {
	var b strings.Builder
	for line := range strings.Lines(console.ExitTable) {
		code, text, begins := strings.Cut(strings.TrimLeft(line, " "), "  ")
		switch {
		case strings.HasPrefix(line, " ") && begins:
			fmt.Fprintf(&b, "\n### Exit code %s\n\n%s", code, escaped(text))
		case strings.HasPrefix(line, " "):
			b.WriteString(escaped(strings.TrimLeft(line, " ")))
		case strings.HasPrefix(line, "Only"):
			b.WriteString("\n### Exit codes of overdue\n\n" + line)
		case b.Len() > 0:
			b.WriteString(line)
		}
	}
	return b.String() + "\n"
}

// linked returns links to topics, without the one that a command's section contains.
func linked(topics []string, name string) (links []string) {
	for _, topic := range topics {
		if topic != name {
			links = append(links, fmt.Sprintf("[%s](topics.md#%s)", topic, topic))
		}
	}
	return links
}

// described lists options below their categories.
func described(all []*options.Option) string {
	var b strings.Builder
	category := ""
	for _, o := range all {
		if o.In != category {
			category = o.In
			fmt.Fprintf(&b, "\n%s%s:\n\n", category[:1], strings.ToLower(category[1:]))
		}
		text := variable.ReplaceAllString(escaped(o.Text()), "(`$$$1`)")
		b.WriteString(folded("  ", fmt.Sprintf("- `%s`: %s", o.Spellings(), text)))
	}
	return b.String()
}

// folded breaks a text into lines, and indents all but the first.
func folded(indent, text string) string {
	const width = 110
	var b strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return b.String() + line + "\n"
}

var (
	label    = regexp.MustCompile(`^[A-Z][A-Z ]+[A-Z][.:]`)
	page     = regexp.MustCompile(`https://github\.com/multilock/go/blob/main/docs/([a-z0-9/-]+\.md)`)
	variable = regexp.MustCompile(`\\\[\$(\w+)\]`)
	special  = regexp.MustCompile("[*<\\[`\\\\]|\\b_|_\\b|^#")
)

// markdown converts a help text. Indented lines are code.
func markdown(text string) string {
	var b strings.Builder
	wasCode, wasBlank := false, true
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		isCode, isBlank := strings.HasPrefix(line, "   "), line == "\n"
		if !isBlank && isCode != wasCode && !wasBlank {
			b.WriteString("\n")
		}
		text := " " + line
		if !isCode {
			text = page.ReplaceAllString(escaped(line), "[$1](../$1)")
			if found := label.FindString(text); found != "" && wasBlank {
				text = "**" + found[:1] + strings.ToLower(found[1:]) + "**" + text[len(found):]
			}
		}
		b.WriteString(text)
		wasCode, wasBlank = isCode || isBlank && wasCode, isBlank
	}
	return b.String()
}

// escaped escapes the special characters of Markdown.
func escaped(text string) string { return special.ReplaceAllString(text, `\$0`) }
