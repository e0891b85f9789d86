package batch

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// ManifestError means that the group has another list of jobs.
type ManifestError struct {
	// Line is the number of the first different line, from 1. Ours and Theirs are that line in both
	// lists, as NAME, a tab and COMMAND; "" beyond the end of a list. If Line is 0 the jobs are the
	// same, and Ours and Theirs are the barriers, needs and shells.
	Line         int
	Ours, Theirs string
}

func (e *ManifestError) Error() string {
	const most = 300 // bytes of a job in a message
	ours, theirs := source.Shorten(e.Ours, most), source.Shorten(e.Theirs, most)
	switch {
	case e.Line == 0:
		return fmt.Sprintf("the group was given the same jobs with %s, and here with %s", cmp.Or(theirs, noRules), cmp.Or(ours, noRules))
	case e.Ours == "":
		return fmt.Sprintf("the group was given a longer list of jobs: job %d, %q, is missing here", e.Line, theirs)
	case e.Theirs == "":
		return fmt.Sprintf("the group was given a shorter list of jobs: job %d, %q, is not in it", e.Line, ours)
	}
	return fmt.Sprintf("the group has a different list of jobs: job %d is %q there, and %q here", e.Line, theirs, ours)
}

// The first line of a manifest is a head if it has no tab: it has the chunk sizes, the barriers, the
// needs and the shell.
var chunkedHead = fmt.Sprintf("#chunks of %d, or a share of %d", maxChunk, chunkShare)

const (
	barriersHead = "#barriers after"
	shellHead    = "#shell "
	// noRules replaces the text of a head without rules in a message.
	noRules = "no barriers, needs or shell"
)

// headOf encodes the head.
func headOf(barriers []int, needs []Needs, shell string) []byte {
	head := []byte(chunkedHead)
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
	return append(head, '\n')
}

// rulesIn returns the barriers, needs and shell of a head, for people.
func rulesIn(head []byte) string {
	rules := slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(head), "\n"), "#"), func(rule string) bool {
		return rule == "" || strings.HasPrefix(rule, "chunks")
	})
	return strings.Join(rules, ", ")
}

// encodeManifest encodes a head and a list of jobs, one per line.
func encodeManifest(head []byte, jobs []Job) []byte {
	var list bytes.Buffer
	list.Grow(lengthOf(head, jobs))
	list.Write(head)
	inLine := strings.NewReplacer("\\", `\\`, "\n", `\n`)
	for _, job := range jobs {
		_, _ = inLine.WriteString(&list, job.Name) // a buffer returns no errors
		list.WriteByte('\t')
		_, _ = inLine.WriteString(&list, job.Command)
		list.WriteByte('\n')
	}
	return list.Bytes()
}

// lengthOf returns the length of a manifest without escapes.
func lengthOf(head []byte, jobs []Job) int {
	n := len(head)
	for _, job := range jobs {
		n += len(job.Name) + len("\t") + len(job.Command) + len("\n")
	}
	return n
}

// cutHead splits off the head of a manifest, if it has one.
func cutHead(manifest []byte) (head, list []byte) {
	end := bytes.IndexByte(manifest, '\n') + 1
	if end == 0 || bytes.IndexByte(manifest[:end], '\t') >= 0 {
		return nil, manifest
	}
	return manifest[:end], manifest[end:]
}

// compareManifests returns the first line in which two lists differ; before is the number of jobs
// before them. It ignores a missing final newline.
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
