package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup/batch"
)

// argsMark precedes each list of values on the command line.
const argsMark = ":::"

// maxCombined bounds the number of combined values.
const maxCombined = 1_000_000

// listOfArgs makes jobs from a template and values, like GNU parallel: {} is the value, quoted for
// the shell; {1}, {2}, ... are the values of several lists; {#} is the job's number. Values are
// appended to a template without placeholders.
func listOfArgs(args []string) (batchList, error) {
	at := slices.Index(args, argsMark)
	template := strings.Join(args[:at], " ")
	if strings.TrimSpace(template) == "" {
		return batchList{}, console.Usagef("batch", "write the command before %s, such as: batch 'convert {}' %s a.png b.png", argsMark, argsMark)
	}
	lists, err := splitArgs(args[at+1:])
	if err != nil {
		return batchList{}, err
	}
	total := 1
	for _, values := range lists {
		if i := slices.IndexFunc(values, func(value string) bool { return !quotable(value) }); i >= 0 {
			return batchList{}, console.Usagef("batch", "no quotes keep cmd.exe from reading %s as more than a value; rename it, or write the job into a list", console.Quote(values[i]))
		}
		if total *= len(values); total > maxCombined {
			return batchList{}, console.Usagef("batch", "the lists of values make more than %d jobs together", maxCombined)
		}
	}
	var list batchList
	for n := range total {
		command := fillTemplate(template, combination(lists, n), n+1)
		if len(command) > longestCommand() {
			return batchList{}, console.Usagef("batch", "the command of job %d has %d bytes, and the system passes %d at most to a shell: write it into a script, and let the jobs run that", n+1, len(command), longestCommand())
		}
		list.add(int32(n+1), batch.Job{Command: command}) //nolint:gosec // bounded above
	}
	return list, nil
}

// splitArgs splits the values into lists.
func splitArgs(args []string) (lists [][]string, err error) {
	lists = [][]string{nil}
	for _, arg := range args {
		if arg == argsMark {
			lists = append(lists, nil)
			continue
		}
		lists[len(lists)-1] = append(lists[len(lists)-1], arg)
	}
	for _, values := range lists {
		if len(values) == 0 {
			return nil, console.Usagef("batch", "there are no values after %s", argsMark)
		}
	}
	return lists, nil
}

// combination returns the values of job n. The last list varies fastest.
func combination(lists [][]string, n int) []string {
	values := make([]string, len(lists))
	for i, list := range slices.Backward(lists) {
		values[i], n = list[n%len(list)], n/len(list)
	}
	return values
}

// fillTemplate fills in the template in one pass, because a value may look like a placeholder.
func fillTemplate(template string, values []string, number int) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = shellWord(value)
	}
	all := strings.Join(quoted, " ")
	places := []string{"{}", all, "{#}", strconv.Itoa(number)}
	for i, value := range quoted {
		places = append(places, fmt.Sprintf("{%d}", i+1), value)
	}
	if out := strings.NewReplacer(places...).Replace(template); out != template {
		return out
	}
	return template + " " + all
}

// isPlain reports whether a value needs no quotes.
func isPlain(value string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,+@%=", r)
	}
	return value != "" && strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0
}
