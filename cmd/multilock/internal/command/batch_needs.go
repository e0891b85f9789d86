package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/load"
	"github.com/multilock/go/lockgroup/batch"
)

// needsLine starts a line with the needs of the jobs below it: "NEEDS cpus=4 mem=8G". Alone it means one
// processor and no memory.
const needsLine = "NEEDS"

// isNeedsLine reports whether a line declares needs. A job or program named NEEDS is distinguished by a tab,
// a leading space or a path.
func isNeedsLine(text string) bool {
	return text == needsLine || strings.HasPrefix(text, needsLine+" ")
}

// listNeeds has the needs of a list's jobs, and their lines.
type listNeeds struct {
	needs []batch.Needs
	lines []int32
	wrong []string
}

// add parses a line above the job with this number.
func (l *listNeeds) add(line int32, text string, before int) {
	n, err := parseNeeds(strings.TrimPrefix(text, needsLine))
	if err != nil {
		l.wrong = append(l.wrong, fmt.Sprintf("line %d: %v", line, err))
		return
	}
	if last := len(l.needs) - 1; last >= 0 && l.needs[last].From == before { // no job between them
		l.needs, l.lines = l.needs[:last], l.lines[:last]
	}
	n.From = before
	l.needs, l.lines = append(l.needs, n), append(l.lines, line)
}

var errNeeds = errors.New("write " + needsLine + " cpus=4 mem=8G, or one of both, for the jobs below it; a program of that name is called with a space before it")

// parseNeeds parses "cpus=4 mem=8G".
func parseNeeds(text string) (n batch.Needs, err error) {
	if strings.Contains(text, "\t") {
		return n, fmt.Errorf("the needs of jobs belong on a line of their own, above the jobs: %w", errNeeds)
	}
	n.CPUs = 1
	for word := range strings.FieldsSeq(text) {
		what, value, _ := strings.Cut(word, "=")
		switch what {
		case "cpus":
			n.CPUs, err = strconv.Atoi(value)
		case "mem":
			var size console.Size
			err = size.Set(value)
			n.Memory = int64(size) //nolint:gosec // Set bounds it
		default:
			err = errNeeds
		}
		if err != nil || n.CPUs < 1 {
			return n, fmt.Errorf("%q: %w", word, errNeeds)
		}
	}
	return n, nil
}

// needs is the value of --needs.
type needs struct{ batch.Needs }

func (n *needs) Set(text string) (err error) {
	if n.Needs, err = parseNeeds(text); err != nil || len(strings.Fields(text)) == 0 {
		return errors.New("write 'cpus=4 mem=8G', or one of both")
	}
	return nil
}

// memoryForJobs returns the memory for jobs in bytes: --mem, or else the host's. It is 0 if no job needs
// memory and --mem is not given.
func (o *batchOptions) memoryForJobs(list *batchList) (console.Size, error) {
	needed := false
	for _, n := range list.needs.needs {
		needed = needed || n.Memory > 0
	}
	if !needed || o.memory > 0 {
		return o.memory, nil
	}
	host, err := load.ReadMemory()
	if err != nil {
		return 0, console.Usagef("batch", "use --mem to set how much memory the jobs may have here; the memory of this host is not known: %w", err)
	}
	return console.Size(host.Total), nil
}

// checkNeeds rejects jobs that can never run here.
func (o *batchOptions) checkNeeds(list *batchList, memory console.Size) error {
	for i, n := range list.needs.needs {
		if n.From > len(list.jobs) {
			continue
		}
		job := fmt.Sprintf("job %q", list.jobs[n.From-1].Name)
		if line := list.needs.lines[i]; line > 0 {
			job += fmt.Sprintf(" (line %d)", line)
		}
		switch size := console.Size(n.Memory); { //nolint:gosec // it is not negative
		case n.CPUs > o.workers():
			return console.Usagef("batch", "%s needs %d processors, and -j gives all jobs together %d here: write -j %d if this host has so many, or run the list where there are more", job, n.CPUs, o.workers(), n.CPUs)
		case size > memory && memory > 0:
			return console.Usagef("batch", "%s needs %s of memory, and all jobs together have %s here: write --mem %s if this host has so much, or run the list where there is more", job, size, memory, size)
		}
	}
	return nil
}
