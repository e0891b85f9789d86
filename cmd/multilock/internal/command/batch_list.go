package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

// batchList is a list of jobs, possibly a million. All texts are substrings of one string.
type batchList struct {
	from string // the file, for messages; "" for jobs from the command line
	jobs []batch.Job
	// lines are the jobs' line numbers, negative for jobs with names.
	lines []int32
	// barriers are the numbers of the jobs before a barrier.
	barriers []int
	shell    shell
	needs    listNeeds
	memory   console.Size // available on this host; 0 if no job needs memory
	// remarks describe unusual input that was accepted.
	remarks []string
	// unit is what line numbers in errors count: lines or jobs.
	unit string
	// wrong has the errors found while reading.
	wrong []string
}

// add appends a job; its line number is negative if it has a name.
func (l *batchList) add(line int32, job batch.Job) {
	l.jobs, l.lines = append(l.jobs, job), append(l.lines, line)
}

// addProblem records an error, for which the list will be rejected.
func (l *batchList) addProblem(line int32, why string) {
	l.wrong = append(l.wrong, fmt.Sprintf("line %d: %s", line, why))
}

// workers is how many jobs run at a time, by default the number of processors that this process and
// its cgroup (cpu.max) may use.
func (o *batchOptions) workers() int {
	if o.jobs.Given {
		return o.jobs.Value
	}
	return runtime.GOMAXPROCS(0)
}

func readBatch(ctx context.Context, e *Env, src *place.Source, o *batchOptions) (batchList, error) {
	list, err := o.readList(e)
	if err == nil {
		err = o.nameList(ctx, src, &list)
	}
	if err != nil {
		return list, err
	}
	if err := o.shellOf(&list); err != nil {
		return list, err
	}
	if list.memory, err = o.memoryForJobs(&list); err == nil {
		err = o.checkNeeds(&list, list.memory)
	}
	if err != nil {
		return list, err
	}
	if !o.Quiet {
		for _, remark := range list.remarks {
			e.Say("warning: %s: %s", list.from, remark)
		}
	}
	for i := range list.jobs {
		list.jobs[i].Shown = o.line(list.jobs[i].Command)
	}
	return list, nil
}

// readList reads the list from a file, or makes it from the command line.
func (o *batchOptions) readList(e *Env) (batchList, error) {
	var needs listNeeds
	if o.needs.CPUs > 0 {
		needs = listNeeds{needs: []batch.Needs{{From: 1, CPUs: o.needs.CPUs, Memory: o.needs.Memory}}, lines: []int32{0}}
	}
	if len(o.args) > 0 {
		list, err := argList{files: o.argFiles, colsep: o.colsep, header: o.header != "", read: readValues(e, o.null)}.jobs(o.args)
		list.needs = needs
		return list, err
	}
	f, from, err := openList(e, o.list)
	if err != nil {
		return batchList{}, fmt.Errorf("read the list of jobs: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was read
	if o.null {
		return parsePairs(f, from, needs)
	}
	return parseLines(f, from, needs)
}

// nameList names the jobs without names, and checks all names. Numbers keep the width that they have in the
// group's list, which may have been shorter.
func (o *batchOptions) nameList(ctx context.Context, src *place.Source, list *batchList) error {
	width := 0
	unnamed := slices.ContainsFunc(list.lines, func(line int32) bool { return line > 0 })
	if manifests, ok := src.Locks.(source.ManifestStore); ok && (unnamed || o.replace) {
		var err error
		if width, err = joblist.NumberWidth(ctx, manifests); err != nil {
			return err
		}
		if o.redo, err = joblist.Padded(ctx, manifests, o.redo); err != nil {
			return err
		}
	}
	if list.nameByNumber(width); list.from == "" {
		return nil // commands from the command line are already checked
	}
	return list.check(src)
}

// openList opens a file, or the standard input for "-", and returns a name for messages. For root
// it rejects a file that other users could have written, because its lines run as commands.
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
		err = fmt.Errorf("%w, so root does not trust it; remove the write permission, or pass it on the standard input: - <%s", err, console.Quote(path))
	}
	return list, path, err
}

// barrierLine separates stages: the jobs above it are done before any job below it begins. A job or
// program with that name is distinguished by a tab, a leading space or a path.
const barrierLine = "BARRIER"

// addBarrier ignores barriers at the top and repeated ones.
func (l *batchList) addBarrier() {
	if n := len(l.jobs); n > 0 && !slices.Contains(l.barriers[max(len(l.barriers)-1, 0):], n) {
		l.barriers = append(l.barriers, n)
	}
}

// endBarriers removes a barrier at the end.
func (l *batchList) endBarriers() {
	if last := len(l.barriers) - 1; last >= 0 && l.barriers[last] == len(l.jobs) {
		l.barriers = l.barriers[:last]
	}
}

// nameByNumber names the jobs without names by zero-padded numbers, so that names sort like the list.
func (l *batchList) nameByNumber(width int) {
	if width == 0 {
		width = len(strconv.Itoa(len(l.jobs)))
	}
	var names strings.Builder
	names.Grow(width * len(l.jobs))
	for i := range l.jobs {
		fmt.Fprintf(&names, "%0*d", width, i+1)
	}
	left := names.String()
	for i := range l.jobs {
		digits := max(width, len(strconv.Itoa(i+1)))
		if l.lines[i] > 0 {
			l.jobs[i].Name = left[:digits]
		}
		left = left[digits:]
	}
}

// maxProblems bounds how many errors a message shows.
const maxProblems = 10

// check rejects invalid and duplicate names, and invalid lines.
func (l *batchList) check(src *place.Source) error {
	problems := slices.Concat(l.wrong, l.needs.wrong)
	first, grow := map[string]int{}, true
	for i, job := range l.jobs {
		// Sorted names have no duplicates, so the map is built only when the order breaks.
		if grow = grow && (i == 0 || l.jobs[i-1].Name < job.Name); !grow && len(first) == 0 {
			for k := range i {
				first[l.jobs[k].Name] = k
			}
		}
		if problem := l.problem(src, i, first); problem != "" {
			problems = append(problems, fmt.Sprintf("%s %d: %s", l.unit, l.line(i), problem))
		}
		if !grow {
			first[job.Name] = i
		}
	}
	if len(problems) == 0 {
		return nil
	}
	more := ""
	if n := len(problems) - maxProblems; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return console.Usagef("batch", "%s: %s%s", l.from, strings.Join(problems[:min(len(problems), maxProblems)], "; "), more)
}

func (l *batchList) line(i int) int32 { return max(l.lines[i], -l.lines[i]) }

// problem returns what is wrong with a job; first maps the names before it to their jobs.
func (l *batchList) problem(src *place.Source, i int, first map[string]int) string {
	job := l.jobs[i]
	if k, twice := first[job.Name]; twice {
		return fmt.Sprintf("the name %q is that of %s %d", job.Name, l.unit, l.line(k))
	}
	if err := src.CheckNames([]string{job.Name}); err != nil {
		return err.Error()
	}
	switch {
	case strings.ContainsRune(job.Command, 0):
		return "there is a NUL byte in the command; a list with NUL bytes is read with --null"
	case strings.TrimSpace(job.Command) == "":
		return fmt.Sprintf("%q has no command", job.Name)
	case len(job.Command) > longestCommand():
		return fmt.Sprintf("the command has %d bytes, and the system passes %d at most to a shell: write it into a script, and let the job run that", len(job.Command), longestCommand())
	}
	return ""
}
