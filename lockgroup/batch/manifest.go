package batch

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// ManifestError says that another list of jobs was given to the group before.
type ManifestError struct {
	// Line is the number of the first line that differs, from 1. Ours and Theirs are
	// that line of both lists, as NAME, a tab and COMMAND; "" behind the end of one. With
	// Line 0 the jobs are the same, and these are the barriers, needs and shells of both.
	Line         int
	Ours, Theirs string
}

func (e *ManifestError) Error() string {
	const most = 300 // bytes of a job, in a message
	ours, theirs := source.Shorten(e.Ours, most), source.Shorten(e.Theirs, most)
	switch {
	case e.Line == 0:
		return fmt.Sprintf("the group was given the same jobs with %s, and here with %s", cmp.Or(theirs, noRules), cmp.Or(ours, noRules))
	case e.Ours == "":
		return fmt.Sprintf("the group was given a longer list of jobs: job %d, %q, is missing here", e.Line, theirs)
	case e.Theirs == "":
		return fmt.Sprintf("the group was given a shorter list of jobs: job %d, %q, is not in it", e.Line, ours)
	}
	return fmt.Sprintf("the group was given another list of jobs: job %d is %q there, and %q here", e.Line, theirs, ours)
}

// What the first line of a manifest says, which has no tab, as the line of a job has one: that
// the list is claimed in chunks, after which jobs barriers stand, what jobs need, and what
// runs them.
var chunkedHead = fmt.Sprintf("#chunks of %d, or a share of %d", maxChunk, chunkShare)

const (
	barriersHead = "#barriers after"
	shellHead    = "#shell "
	// noRules stands in a message for a first line that says nothing of the jobs.
	noRules = "no barriers, needs or shell"
)

// headOf is the first line; nothing if there is nothing to say.
func headOf(chunked bool, barriers []int, needs []Needs, shell string) []byte {
	var head []byte
	if chunked {
		head = append(head, chunkedHead...)
	}
	if len(barriers) > 0 {
		head = append(head, barriersHead...)
	}
	for _, after := range barriers {
		head = fmt.Appendf(head, " %d", after)
	}
	head = append(head, needsText(needs)...)
	if shell != "" {
		head = append(head, shellHead+shell...)
	}
	if len(head) == 0 {
		return nil
	}
	return append(head, '\n')
}

// rulesIn is what a first line says of barriers, needs and the shell, for people.
func rulesIn(head []byte) string {
	rules := slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(head), "\n"), "#"), func(rule string) bool {
		return rule == "" || strings.HasPrefix(rule, "chunks")
	})
	return strings.Join(rules, ", ")
}

// encodeManifest writes a list of jobs, one on a line, behind a head.
func encodeManifest(head []byte, jobs []Job) []byte {
	var list bytes.Buffer
	list.Grow(lengthOf(head, jobs))
	list.Write(head)
	inLine := strings.NewReplacer("\\", `\\`, "\n", `\n`)
	for _, job := range jobs {
		_, _ = inLine.WriteString(&list, job.Name) // a buffer takes all
		list.WriteByte('\t')
		_, _ = inLine.WriteString(&list, job.Command)
		list.WriteByte('\n')
	}
	return list.Bytes()
}

// lengthOf is how long a manifest is, where nothing in it has to be written differently.
func lengthOf(head []byte, jobs []Job) int {
	n := len(head)
	for _, job := range jobs {
		n += len(job.Name) + len("\t") + len(job.Command) + len("\n")
	}
	return n
}

// cutHead takes the head off a manifest, if it has one.
func cutHead(manifest []byte) (head, list []byte) {
	end := bytes.IndexByte(manifest, '\n') + 1
	if end == 0 || bytes.IndexByte(manifest[:end], '\t') >= 0 {
		return nil, manifest
	}
	return manifest[:end], manifest[end:]
}

// compareManifests finds the first line in which two lists differ. Empty lines at the end, and a
// last line without an end, are no difference. So many jobs are before them.
func compareManifests(ours, theirs []byte, before int) error {
	for n := before + 1; len(ours) > 0 || len(theirs) > 0; n++ {
		our, ourRest, _ := bytes.Cut(ours, []byte{'\n'})
		their, theirRest, _ := bytes.Cut(theirs, []byte{'\n'})
		if !bytes.Equal(our, their) {
			return &ManifestError{Line: n, Ours: string(our), Theirs: string(their)}
		}
		ours, theirs = ourRest, theirRest
	}
	return nil
}
