package command

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup/batch"
)

// isMark reports whether an argument precedes a list of values: ":::" the values themselves, "::::" files
// with one value on each line. With "+" the list is linked to the one before it, value by value. All other
// lists are combined, each value with each.
func isMark(arg string) bool {
	return slices.Contains([]string{":::", ":::+", "::::", "::::+"}, arg)
}

// valueFiles returns the files behind "::::".
func valueFiles(args []string) (files []string) {
	mark := ""
	for _, arg := range args {
		switch {
		case isMark(arg):
			mark = arg
		case strings.HasPrefix(mark, "::::"):
			files = append(files, arg)
		}
	}
	return files
}

// maxCombined bounds the number of combined values.
const maxCombined = 1_000_000

// valueList is a list of values. A value has several columns if it is split, or linked to others.
type valueList struct {
	values [][]string
	names  []string // of the columns, with --header
}

// argList is a list of jobs on the command line: a template and lists of values.
type argList struct {
	files  []string       // of --arg-file
	colsep *regexp.Regexp // splits values into columns; nil without --colsep
	header bool           // the first value of each list is a header with the names of its columns
	read   func(file string) ([]string, error)
}

// jobs makes the jobs of a command line.
func (a argList) jobs(args []string) (batchList, error) {
	at := slices.IndexFunc(args, isMark)
	if at < 0 {
		at = len(args)
	}
	text := strings.Join(args[:at], " ")
	if strings.TrimSpace(text) == "" {
		return batchList{}, console.Usagef("batch", "write the command before the values, such as: batch 'convert {} {.}.png' ::: a.gif b.gif")
	}
	lists, err := a.lists(args[at:])
	if err != nil {
		return batchList{}, err
	}
	var names []string
	total := 1
	for _, l := range lists {
		names = append(names, l.names...)
		if total *= len(l.values); total > maxCombined {
			return batchList{}, console.Usagef("batch", "the lists of values make more than %d jobs together", maxCombined)
		}
	}
	columns, err := checkValues(lists)
	if err != nil {
		return batchList{}, err
	}
	t, err := parseTemplate(text, columns, names)
	if err != nil {
		return batchList{}, err
	}
	var list batchList
	for n := range total {
		command := t.fill(combination(lists, n), n+1, total)
		if len(command) > longestCommand() {
			return batchList{}, console.Usagef("batch", "the command of job %d has %d bytes, and the system passes %d at most to a shell: write it into a script, and let the jobs run that", n+1, len(command), longestCommand())
		}
		list.add(int32(n+1), batch.Job{Command: command}) //nolint:gosec // bounded above
	}
	return list, nil
}

// lists reads all lists of values.
func (a argList) lists(args []string) (lists []valueList, err error) {
	add := func(mark string, words []string) error {
		values, err := a.valuesOf(mark, words)
		if err != nil {
			return err
		}
		for _, l := range values {
			if strings.HasSuffix(mark, "+") {
				if len(lists) == 0 {
					return console.Usagef("batch", "%s links a list to the one before it, but there is no list before it", mark)
				}
				if err := lists[len(lists)-1].link(l, mark); err != nil {
					return err
				}
				continue
			}
			lists = append(lists, l)
		}
		return nil
	}
	if len(a.files) > 0 {
		err = add("::::", a.files)
	}
	for len(args) > 0 && err == nil {
		end := len(args)
		if next := slices.IndexFunc(args[1:], isMark); next >= 0 {
			end = next + 1
		}
		err = add(args[0], args[1:end])
		args = args[end:]
	}
	return lists, err
}

// valuesOf reads the lists after one mark: one list, or one for each file.
func (a argList) valuesOf(mark string, words []string) (lists []valueList, err error) {
	if len(words) == 0 {
		return nil, console.Usagef("batch", "there are no values after %s", mark)
	}
	sources := [][]string{words}
	if strings.HasPrefix(mark, "::::") {
		sources = nil
		for _, file := range words {
			values, err := a.read(file)
			if err != nil {
				return nil, err
			}
			sources = append(sources, values)
		}
	}
	for i, values := range sources {
		l := valueList{}
		for _, value := range values {
			columns := []string{value}
			if a.colsep != nil {
				columns = a.colsep.Split(value, -1)
			}
			l.values = append(l.values, columns)
		}
		if a.header && len(l.values) > 0 {
			l.names, l.values = l.values[0], l.values[1:]
		}
		if len(l.values) == 0 {
			what := mark
			if len(sources) > 1 || strings.HasPrefix(mark, "::::") {
				what = words[i]
			}
			return nil, console.Usagef("batch", "there are no values in %s", what)
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// link appends the columns of another list.
func (l *valueList) link(other valueList, mark string) error {
	if len(l.values) != len(other.values) {
		return console.Usagef("batch", "%s: the lists that belong together have %d and %d values", mark, len(l.values), len(other.values))
	}
	for i := range l.values {
		l.values[i] = append(l.values[i], other.values[i]...)
	}
	l.names = append(l.names, other.names...)
	return nil
}

// checkValues requires the same number of columns of all values of a list, and returns the total number of
// columns.
func checkValues(lists []valueList) (columns int, err error) {
	for _, l := range lists {
		for i, value := range l.values {
			switch bad := slices.IndexFunc(value, func(text string) bool { return !quotable(text) }); {
			case len(value) != len(l.values[0]) || l.names != nil && len(value) != len(l.names):
				return 0, console.Usagef("batch", "value %d, %s, has %s, and others have more or fewer: see --colsep", i+1, console.Quote(strings.Join(value, " ")), plural(len(value), "column"))
			case bad >= 0:
				return 0, console.Usagef("batch", "no quotes keep cmd.exe from reading %s as more than a value; rename it, or write the job into a list", console.Quote(value[bad]))
			}
		}
		columns += len(l.values[0])
	}
	return columns, nil
}

// combination returns the values of job n. The last list varies fastest.
func combination(lists []valueList, n int) (columns []string) {
	picked := make([][]string, len(lists))
	for i, l := range slices.Backward(lists) {
		picked[i], n = l.values[n%len(l.values)], n/len(l.values)
	}
	return slices.Concat(picked...)
}

// readValues reads a file with one value on each line or, with --null, before each NUL byte.
func readValues(e *Env, null bool) func(file string) ([]string, error) {
	return func(file string) ([]string, error) {
		f, from, err := openList(e, file)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // only read from
		if null {
			data, err := io.ReadAll(f)
			if err != nil || len(data) == 0 {
				return nil, err
			}
			return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), nil
		}
		text, _, err := readText(f, from, "batch")
		if err != nil || text == "" {
			return nil, err
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if slices.ContainsFunc(lines, func(line string) bool { return strings.ContainsRune(line, 0) }) {
			return nil, console.Usagef("batch", "there is a NUL byte in %s: give one value on each line, or use --null", from)
		}
		if !slices.ContainsFunc(lines, func(line string) bool { return !strings.HasSuffix(line, "\r") }) {
			for i := range lines {
				lines[i] = strings.TrimSuffix(lines[i], "\r")
			}
		}
		return lines, nil
	}
}

// isPlain reports whether a value needs no quotes.
func isPlain(value string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,+@%=", r)
	}
	return value != "" && strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0
}
