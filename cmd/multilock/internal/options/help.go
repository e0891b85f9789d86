package options

import (
	"cmp"
	"fmt"
	"strings"
)

// columns is how wide help is.
const columns = 80

// Short lists the options of a command that -h shows, a line each, and what happens without them if
// there is room.
func Short(command string) string {
	var rows [][2]string
	width := 0
	for _, o := range Of(command) {
		if !strings.HasSuffix(o.shown(command), "!") {
			continue
		}
		names := "    --" + o.Name
		switch {
		case o.Letter != "" && len(o.Name) > 12:
			names = "-" + o.Letter
		case o.Letter != "":
			names = "-" + o.Letter + ", --" + o.Name
		}
		text, _, _ := strings.Cut(o.Help, "; ")
		rows = append(rows, [2]string{strings.TrimRight(names+" "+o.Example(), " "), text + "\n" + o.remark()})
		width = max(width, len(rows[len(rows)-1][0]))
	}
	var b strings.Builder
	for _, row := range rows {
		text, remark, _ := strings.Cut(row[1], "\n")
		if 2+width+2+len(text+remark) > columns {
			remark = ""
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, row[0], text+remark)
	}
	return b.String()
}

// remark says what happens without the option.
func (o *Option) remark() string {
	text := cmp.Or(o.Else, o.Default)
	if text == "" || !o.TakesValue() {
		return ""
	}
	return " (default: " + text + ")"
}

// Text says all about an option.
func (o *Option) Text() string {
	text := o.Help + o.remark()
	if o.Env != "" {
		text += " [$" + o.Env + "]"
	}
	return text
}

// Spellings are all that are shown, each with the word for the value.
func (o *Option) Spellings() string {
	names := "--" + o.Name
	if o.Letter != "" {
		names = "-" + o.Letter + ", " + names
	}
	return strings.TrimRight(names+" "+o.Word(), " ")
}

// Long lists all options of a command, by category.
func Long(command string) string {
	var b strings.Builder
	category := ""
	for _, o := range Of(command) {
		if o.In != category {
			category = o.In
			fmt.Fprintf(&b, "\n   %s\n\n", category)
		}
		const indent = 28
		names := "   " + o.Spellings()
		if len(names) > indent-2 {
			b.WriteString(names + "\n")
			names = ""
		}
		fmt.Fprintf(&b, "%-*s%s\n", indent, names, strings.ReplaceAll(wrapped(o.Text(), columns-indent), "\n", "\n"+strings.Repeat(" ", indent)))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// Wrap breaks the paragraphs of a text into lines; what is indented stays as it is.
func Wrap(text string) string {
	var lines, open []string
	flush := func() {
		if len(open) > 0 {
			lines, open = append(lines, wrapped(strings.Join(open, " "), columns)), nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			open = append(open, line)
			continue
		}
		flush()
		lines = append(lines, line)
	}
	flush()
	return strings.Join(lines, "\n")
}

// wrapped breaks a text into lines.
func wrapped(text string, width int) string {
	var b strings.Builder
	at := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case at == 0:
		case at+1+len(word) > width:
			b.WriteString("\n")
			at = 0
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
