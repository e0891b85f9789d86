package command

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// template is a command with the replacement strings of GNU parallel:
//
//	{} {.} {/} {//} {/.}     the value; without its extension; its base name; its directory; the base
//	                         name without the extension
//	{2} {2.} {2/} {-1} {x/.} the same of one column, by its number, from the end, or by its name
//	{#} {##}                 the number of the job, and of all jobs
//
// Values are quoted for the shell. Without any of these, the values are appended.
type template []piece

// piece is a literal text, or the replacement of one string.
type piece struct {
	text  string
	value func(columns []string, job, jobs int) string // nil for a literal
}

// replacement matches a replacement string: a column with a change, a number, or a string of GNU
// parallel that is not supported.
var replacement = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{(?:(-?\d+|[A-Za-z_][\w-]*)?(/\.|//|/|\.)?|(##?)|(%|=.*?=|(?:-?\d+)?(?:/?\.\.\.?|\+(?:/|\.{1,3}))))\}`)
})

// parseTemplate parses a template for a number of columns, which may have names.
func parseTemplate(text string, columns int, names []string) (template, error) {
	var t template
	end := 0
	for _, at := range replacement().FindAllStringSubmatchIndex(text, -1) {
		part := func(n int) string { return text[max(at[2*n], 0):max(at[2*n+1], 0)] }
		value, err := replacementOf(part(0), part(1), part(2), part(3)+part(4), columns, names)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue // braces for the shell
		}
		t = append(t, piece{text: text[end:at[0]]}, piece{value: value})
		end = at[1]
	}
	if len(t) == 0 {
		return template{{text: text + " "}, {value: all("")}}, nil
	}
	return append(t, piece{text: text[end:]}), nil
}

// replacementOf returns the function for a replacement string; nil for any other text. special is the
// replacement string without its column and change.
func replacementOf(whole, column, change, special string, columns int, names []string) (func([]string, int, int) string, error) {
	switch special {
	case "":
	case "#":
		return func(_ []string, job, _ int) string { return strconv.Itoa(job) }, nil
	case "##":
		return func(_ []string, _, jobs int) string { return strconv.Itoa(jobs) }, nil
	case "%":
		return nil, console.Usagef("batch", `{%%} is known when the job begins: write "$MULTILOCK_SLOT", which is its slot on its host, from 1 to -j`)
	default:
		return nil, console.Usagef("batch", "%s of GNU parallel is not supported here; there are {} {.} {/} {//} {/.} {#} {##}, and {1} {1.} ... for one list of values", whole)
	}
	n, err := strconv.Atoi(column)
	switch {
	case column == "":
		return all(change), nil
	case err != nil:
		i := slices.Index(names, column)
		if i < 0 {
			return nil, nil
		}
		return one(i, change), nil
	case n < 0 && n >= -columns:
		return one(columns+n, change), nil
	case n < 1 || n > columns:
		return nil, console.Usagef("batch", "%s: each job has %s", whole, plural(columns, "value"))
	}
	return one(n-1, change), nil
}

// all replaces a string by all values.
func all(change string) func([]string, int, int) string {
	return func(columns []string, _, _ int) string {
		words := make([]string, len(columns))
		for i, value := range columns {
			words[i] = shellWord(changed(value, change))
		}
		return strings.Join(words, " ")
	}
}

// one replaces a string by the value of one column.
func one(i int, change string) func([]string, int, int) string {
	return func(columns []string, _, _ int) string { return shellWord(changed(columns[i], change)) }
}

// changed applies the change of a replacement string to a value.
func changed(value, change string) string {
	switch change {
	case ".":
		return withoutExtension(value)
	case "/":
		return value[strings.LastIndexByte(value, '/')+1:]
	case "/.":
		return withoutExtension(value[strings.LastIndexByte(value, '/')+1:])
	case "//":
		return path.Dir(value)
	}
	return value
}

// withoutExtension removes the text from the last dot of the base name on.
func withoutExtension(value string) string {
	if dot := strings.LastIndexByte(value, '.'); dot > strings.LastIndexByte(value, '/') {
		return value[:dot]
	}
	return value
}

// fill makes the command of a job. Values that look like replacement strings are left alone.
func (t template) fill(columns []string, job, jobs int) string {
	var command strings.Builder
	for _, p := range t {
		if p.value != nil {
			command.WriteString(p.value(columns, job, jobs))
		} else {
			command.WriteString(p.text)
		}
	}
	return command.String()
}
