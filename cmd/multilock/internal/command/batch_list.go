package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock/shareddir"
)

// batchLine is one job of a list.
type batchLine struct {
	name, command string
	shown         string // of the command, to others
	named         bool
	line          int // where it stands in its file
}

// workers is how many jobs are to be run at a time.
func (o *batchOptions) workers() int {
	if o.jobs.Given {
		return o.jobs.Value
	}
	return runtime.NumCPU()
}

func readBatch(e *Env, src *place.Source, o *batchOptions) ([]batchLine, error) {
	f, from, err := openList(e, o.list)
	if err != nil {
		return nil, fmt.Errorf("read the list of jobs: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was read
	list, err := parseBatch(src, f, from, o.null)
	for i := range list {
		list[i].shown = o.line(list[i].command)
	}
	return list, err
}

// openList opens a file, or the standard input for "-". The name is for people. Root does
// what a file says only if nobody else can have written that; others know whose lists
// they run.
func openList(e *Env, path string) (list io.ReadCloser, name string, err error) {
	if path == "-" {
		return io.NopCloser(e.Stdin), "the standard input", nil
	}
	if os.Geteuid() != 0 {
		list, err = os.Open(path)
		return list, path, err
	}
	list, err = outfile.Open(path)
	if errors.As(err, new(*shareddir.Refusal)) {
		err = fmt.Errorf("%w, so root does not go by what it says; take the right to write away, or give it on the standard input: - <%s", err, console.Quote(path))
	}
	return list, path, err
}

// parseBatch reads jobs: NAME, a tab and a command on each line, or a command
// alone. What is wrong with the names is told of all lines at once.
func parseBatch(src *place.Source, r io.Reader, from string, null bool) ([]batchLine, error) {
	var list []batchLine
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	if null {
		lines.Split(splitNull)
	}
	for n := 1; lines.Scan(); n++ {
		if job, ok := parseBatchLine(lines.Text(), null); ok {
			job.line = n
			list = append(list, job)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the list of jobs from %s: %w", from, err)
	}
	if len(list) == 0 {
		return nil, console.Usagef("batch", "there are no jobs in %s", from)
	}
	nameByNumber(list)
	return list, checkBatch(src, list, from)
}

func splitNull(data []byte, atEnd bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEnd && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// parseBatchLine reports false for what is no job.
func parseBatchLine(text string, null bool) (batchLine, bool) {
	if !null {
		text = strings.TrimSuffix(text, "\r")
	}
	if strings.TrimSpace(text) == "" || text[0] == '#' {
		return batchLine{}, false
	}
	if name, command, named := strings.Cut(text, "\t"); named {
		return batchLine{name: name, command: command, named: true}, true
	}
	return batchLine{command: text}, true
}

// nameByNumber names those that were given no name, so that the names sort as the list.
func nameByNumber(list []batchLine) {
	width := len(fmt.Sprint(len(list)))
	for i := range list {
		if !list[i].named {
			list[i].name = fmt.Sprintf("%0*d", width, i+1)
		}
	}
}

// maxProblems is how many wrong lines are shown.
const maxProblems = 10

// checkBatch finds names that cannot be, or are there twice.
func checkBatch(src *place.Source, list []batchLine, from string) error {
	var problems []string
	first := make(map[string]int, len(list))
	for _, job := range list {
		problem := ""
		if line, twice := first[job.name]; twice {
			problem = fmt.Sprintf("line %d: the name %q is that of line %d", job.line, job.name, line)
		} else if err := src.CheckNames([]string{job.name}); err != nil {
			problem = fmt.Sprintf("line %d: %v", job.line, err)
		} else if strings.ContainsRune(job.command, 0) {
			problem = fmt.Sprintf("line %d: there is a NUL byte in the command; did you mean --null?", job.line)
		} else if strings.TrimSpace(job.command) == "" {
			problem = fmt.Sprintf("line %d: %q has no command", job.line, job.name)
		}
		first[job.name] = job.line
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	more := ""
	if n := len(problems) - maxProblems; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return console.Usagef("batch", "%s: %s%s", from, strings.Join(problems[:min(len(problems), maxProblems)], "; "), more)
}
