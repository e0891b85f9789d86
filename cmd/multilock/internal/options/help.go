package options

import (
	"cmp"
	"fmt"
	"strings"
)

// columns is the width of help texts.
const columns = 80

// Short lists the options of a command that -h shows, one line each, with the default behaviour if
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

// remark describes the behaviour without the option.
func (o *Option) remark() string {
	text := cmp.Or(o.Else, o.Default)
	if text == "" || !o.TakesValue() {
		return ""
	}
	return " (default: " + text + ")"
}

// Text returns the full description of an option.
func (o *Option) Text() string {
	text := o.Help + o.remark()
	if o.Env != "" {
		text += " [$" + o.Env + "]"
	}
	return text
}

// Spellings returns the shown spellings of an option, with its value.
func (o *Option) Spellings() string {
	names := "--" + o.Name
	if o.Letter != "" {
		names = "-" + o.Letter + ", " + names
	}
	return strings.TrimRight(names+" "+o.Word(), " ")
}

// Long lists all options of a command, by category. Of the options common to all commands, it only
// names those for experts: "multilock --help" explains them.
func Long(command string) string {
	var b strings.Builder
	category := ""
	var everywhere []string
	for _, o := range Of(command) {
		if o.Common && o.In == advanced && command != Program {
			everywhere = append(everywhere, "--"+o.Name)
			continue
		}
		if o.In != category {
			category = o.In
			fmt.Fprintf(&b, "\n%s\n", category)
		}
		const indent = 28
		b.WriteString(Item("   "+o.Spellings(), indent, o.Text()))
	}
	if len(everywhere) > 0 {
		b.WriteString("\n" + Wrap("See also multilock --help: "+strings.Join(everywhere, ", ")) + "\n")
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// Item is a text in lines, indented beside its name, or below one that is too long.
func Item(name string, indent int, text string) string {
	if len(name) > indent-1 {
		return name + "\n" + Item("", indent, text)
	}
	return fmt.Sprintf("%-*s%s\n", indent, name, strings.ReplaceAll(wrapped(text, columns-indent), "\n", "\n"+strings.Repeat(" ", indent)))
}

// Wrap breaks the paragraphs of a text into lines; it leaves indented text unchanged.
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
