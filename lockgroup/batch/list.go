package batch

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/source"
)

// list is a list of jobs with its rules. A job without a name was removed: the numbers of jobs never
// change, because chunks and results refer to them.
type list struct {
	jobs     []Job
	barriers []int
	needs    []Needs
	shell    string
	ends     []int // number of the last job of each section; sections are divided separately
	revision int   // number of sections up to the last one that replaces those before it
}

const sectionsHead = "#sections after"

// readList reads the group's list from its sections.
func readList(sections [][]byte) (*list, error) {
	l, from := &list{}, 0
	for n, section := range sections {
		if isWhole(section) {
			from, l.revision = n, n+1
		}
	}
	for _, section := range sections[from:] {
		head, lines := cutHead(section)
		if err := l.readHead(head); err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(lines)) {
			name, command, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			l.jobs = append(l.jobs, Job{Name: joblist.Unescape(name), Command: joblist.Unescape(command)})
		}
		l.ends = append(l.ends, len(l.jobs))
	}
	inside := func(numbers []int) bool {
		return slices.IsSorted(numbers) && (len(numbers) == 0 || numbers[0] >= 0 && numbers[len(numbers)-1] <= len(l.jobs))
	}
	starts := make([]int, len(l.needs))
	for i, n := range l.needs {
		starts[i] = n.From
	}
	if !inside(l.barriers) || !inside(l.ends) || !inside(starts) {
		return nil, anotherVersion(nil)
	}
	return l, nil
}

func isWhole(section []byte) bool { return bytes.HasPrefix(section, []byte(source.Whole)) }

// readHead adds the rules of a section's head.
func (l *list) readHead(head []byte) error {
	text := strings.TrimPrefix(strings.TrimSuffix(string(head), "\n"), source.Whole)
	rules, ok := strings.CutPrefix(text, chunkedHead)
	if !ok {
		return anotherVersion(head)
	}
	for rule := range strings.SplitSeq(rules, "#") {
		rule = "#" + rule
		shell, isShell := strings.CutPrefix(rule, shellHead)
		var n Needs
		switch {
		case rule == "#":
		case isShell:
			l.shell = shell
		case strings.HasPrefix(rule, barriersHead):
			l.barriers = append(l.barriers, numbersIn(rule)...)
		case strings.HasPrefix(rule, sectionsHead):
			l.ends = append(l.ends, numbersIn(rule)...)
		default:
			if _, err := fmt.Sscanf(rule, needsHead+" %d cpus=%d mem=%d", &n.From, &n.CPUs, &n.Memory); err != nil {
				return anotherVersion(head)
			}
			l.needs = append(l.needs, n)
		}
	}
	return nil
}

func numbersIn(rule string) (numbers []int) {
	for field := range strings.FieldsSeq(rule) {
		if n, err := strconv.Atoi(field); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// encode encodes a list that replaces all sections before it.
func (l *list) encode() []byte {
	head := append([]byte(source.Whole), bytes.TrimSuffix(headOf(l.barriers, l.needs, l.shell), []byte{'\n'})...)
	head = append(head, sectionsHead...)
	for _, end := range l.ends {
		head = fmt.Appendf(head, " %d", end)
	}
	return encodeManifest(append(head, '\n'), l.jobs)
}

// stageOf returns the number of barriers before a job.
func (l *list) stageOf(job int) int {
	n, _ := slices.BinarySearch(l.barriers, job+1)
	return n
}

func (l *list) needsOf(job int) Needs { return (&budget{needs: l.needs}).needsOf(job) }

// same reports whether two lists have the same jobs and needs.
func (l *list) same(other *list) bool {
	return slices.EqualFunc(l.jobs, other.jobs, func(a, b Job) bool { return a.Name == b.Name && a.Command == b.Command }) && slices.Equal(l.needs, other.needs)
}

// Changes are the names of jobs that a new list changes.
type Changes struct {
	// Changed have another command or other needs; Redone run again although they were done.
	Changed, Added, Removed, Redone []string
	Unchanged                       int
}

// edit is the change to one job of the group's list.
type edit struct{ command, needs, removed, redo bool }

// edits turn the group's list into another list.
type edits struct {
	Changes
	next *list
	of   map[int]edit // by index
	// first is the first difference.
	first *ManifestError
}

// none reports whether the list does not change.
func (e *edits) none() bool { return len(e.Changed)+len(e.Added)+len(e.Removed) == 0 }

// editsTo compares the group's list with its replacement. It finds jobs by their names, keeps their
// numbers, and appends new ones.
func (l *list) editsTo(ours *list, redo []string) (*edits, error) {
	if l.shell != ours.shell {
		return nil, &ManifestError{Ours: rulesIn(headOf(nil, nil, ours.shell)), Theirs: rulesIn(headOf(nil, nil, l.shell))}
	}
	at := make(map[string]int, len(ours.jobs))
	for i, job := range ours.jobs {
		at[job.Name] = i
	}
	e := &edits{next: &list{shell: l.shell, ends: slices.Clone(l.ends), barriers: slices.Clone(l.barriers)}, of: map[int]edit{}}
	for i, job := range l.jobs {
		k, kept := at[job.Name]
		switch {
		case job.Name == "":
			e.next.append(Job{}, Needs{})
			continue
		case !kept:
			e.next.append(Job{}, Needs{})
			e.removes(i, job)
			continue
		case l.stageOf(i) != ours.stageOf(k):
			return nil, &source.InvalidError{What: "job", Got: job.Name, Why: "it stands between other barriers than in the list that the group has; choose another group"}
		}
		delete(at, job.Name)
		e.next.append(ours.jobs[k], ours.needsOf(k))
		e.keeps(i, job, l.needsOf(i), slices.Contains(redo, job.Name))
	}
	for k, job := range ours.jobs {
		if _, added := at[job.Name]; !added {
			continue
		}
		n := len(e.next.jobs)
		switch stage := ours.stageOf(k); {
		case n > 0 && stage < e.next.stageOf(n-1):
			return nil, &source.InvalidError{What: "job", Got: job.Name, Why: "it is new, and stands above a barrier that the group's list has; write it behind the last barrier, or choose another group"}
		case n > 0 && stage > e.next.stageOf(n-1):
			e.next.barriers = append(e.next.barriers, n)
		}
		e.next.append(job, ours.needsOf(k))
		e.Added = append(e.Added, job.Name)
		e.differs(n, "", inLine(job))
	}
	if n := len(e.next.jobs); n > len(l.jobs) {
		e.next.ends = append(e.next.ends, n)
	}
	return e, nil
}

// append adds a job. A removed job has the needs of the job before it.
func (l *list) append(job Job, n Needs) {
	l.jobs = append(l.jobs, job)
	last := Needs{CPUs: 1}
	if k := len(l.needs); k > 0 {
		last = l.needs[k-1]
	}
	if job.Name != "" && (n.CPUs != last.CPUs || n.Memory != last.Memory) {
		l.needs = append(l.needs, Needs{From: len(l.jobs), CPUs: n.CPUs, Memory: n.Memory})
	}
}

func (e *edits) removes(i int, job Job) {
	e.of[i] = edit{removed: true}
	e.Removed = append(e.Removed, job.Name)
	e.differs(i, inLine(job), "")
}

func (e *edits) keeps(i int, was Job, needed Needs, redo bool) {
	is, needs := e.next.jobs[i], e.next.needsOf(i)
	change := edit{command: is.Command != was.Command, needs: needs.CPUs != needed.CPUs || needs.Memory != needed.Memory, redo: redo}
	switch {
	case change.command:
		e.differs(i, inLine(was), inLine(is))
	case change.needs && e.first == nil:
		e.first = &ManifestError{Ours: was.Name + ": " + needs.text(), Theirs: was.Name + ": " + needed.text()}
	}
	if change.command || change.needs {
		e.Changed = append(e.Changed, was.Name)
	} else {
		e.Unchanged++
	}
	if redo {
		e.Redone = append(e.Redone, was.Name)
	}
	if change != (edit{}) {
		e.of[i] = change
	}
}

func (e *edits) differs(i int, theirs, ours string) {
	if e.first == nil {
		e.first = &ManifestError{Line: i + 1, Ours: ours, Theirs: theirs}
	}
}

// inLine formats a job for ManifestError.
func inLine(job Job) string {
	return strings.TrimSuffix(string(encodeManifest(nil, []Job{job})), "\n")
}
