package joblist

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// Stages reads the names of the jobs in the group's list, divided at its barriers; nil if the group has
// no list.
func Stages(ctx context.Context, src source.ManifestStore) (stages [][]string, err error) {
	var names []string
	var barriers []int
	err = eachLineOfList(ctx, src, func(l line) bool {
		if l.isJob {
			names = append(names, Unescape(string(l.field)))
		} else {
			barriers = append(barriers, barriersIn(l.field)...)
		}
		return true
	})
	if err != nil || len(names) == 0 {
		return nil, err
	}
	done := 0
	for _, after := range append(barriers, len(names)) {
		if after > done && after <= len(names) {
			stage := slices.DeleteFunc(slices.Clone(names[done:after]), func(name string) bool { return name == "" })
			stages, done = append(stages, stage), after
		}
	}
	return stages, nil
}

// barriersIn parses the numbers of jobs before barriers in a head. The parts of a head begin with #.
func barriersIn(head []byte) (after []int) {
	for part := range strings.SplitSeq(string(head), "#") {
		numbers, ok := strings.CutPrefix(part, "barriers after ")
		if !ok {
			continue
		}
		for number := range strings.FieldsSeq(numbers) {
			if n, err := strconv.Atoi(number); err == nil {
				after = append(after, n)
			}
		}
	}
	slices.Sort(after)
	return after
}

// Job is a job of the group's list.
type Job struct {
	// Number is the job's number in the list, from 1.
	Number int

	name, command []byte
}

// Name is the job's name.
func (j Job) Name() string { return Unescape(string(j.name)) }

// Command is the job's command, truncated for a very long line.
func (j Job) Command() string { return Unescape(string(j.command)) }

// Unescape reverses the escapes for newlines in a line of the list.
func Unescape(field string) string {
	if strings.IndexByte(field, '\\') < 0 {
		return field
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(field)
}

// Each reads the group's list, if there is one, and calls visit for each job until visit returns false. It
// skips jobs that were removed: lines without a name, which keep their numbers. The job is only valid
// until visit returns.
func Each(ctx context.Context, src source.ManifestStore, visit func(Job) bool) error {
	return eachLineOfList(ctx, src, func(l line) bool {
		return !l.isJob || len(l.field) == 0 || visit(Job{l.number, l.field, l.rest})
	})
}

// NumberWidth returns the number of digits of job names that are numbers; 0 without such names.
func NumberWidth(ctx context.Context, src source.ManifestStore) (digits int, err error) {
	err = Each(ctx, src, func(j Job) bool {
		if n, wrong := strconv.Atoi(j.Name()); wrong == nil && n == j.Number {
			digits = len(j.name)
		}
		return digits == 0
	})
	return digits, err
}

// Padded returns names with leading zeros on numbers that have fewer digits than the jobs that the group's list
// names by number: people write 7 for 00007.
func Padded(ctx context.Context, src source.ManifestStore, names []string) ([]string, error) {
	isNumber := func(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }
	if !slices.ContainsFunc(names, isNumber) {
		return names, nil
	}
	width, err := NumberWidth(ctx, src)
	if err != nil {
		return nil, err
	}
	padded := slices.Clone(names)
	for i, name := range names {
		if isNumber(name) {
			padded[i] = strings.Repeat("0", max(0, width-len(name))) + name
		}
	}
	return padded, nil
}

// line is a line of the group's list: a job, as NAME, a tab and COMMAND; or a head without a tab,
// of the list or of a later section.
type line struct {
	number      int // of the job, or of the job before the head
	field, rest []byte
	isJob       bool
}

// eachLineOfList reads the group's list line by line, until visit returns false.
func eachLineOfList(ctx context.Context, src source.ManifestStore, visit func(line) bool) error {
	manifest, err := bounded.Call(ctx, src.OpenManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer manifest.Close() //nolint:errcheck // only read from
	lines, number := bufio.NewReaderSize(manifest, 1<<20), 0
	for first := true; ctx.Err() == nil; first = false {
		l, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF), first && errors.Is(err, bufio.ErrBufferFull):
			return nil
		case err != nil:
			return fmt.Errorf("the group's list of jobs, behind job %d: %w", number, err)
		case l.isJob:
			number++
		}
		if l.number = number; !visit(l) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// mostOfLine limits how much of a line is read, in buffers: it rejects a sparse file, which would take
// hours.
const mostOfLine = 64

// readLine reads a line and keeps the first buffer of a long one.
func readLine(lines *bufio.Reader) (l line, err error) {
	text, err := lines.ReadSlice('\n')
	l.field, l.rest, l.isJob = bytes.Cut(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\t'})
	if errors.Is(err, bufio.ErrBufferFull) {
		l.field, l.rest = bytes.Clone(l.field), bytes.Clone(l.rest)
		for n := 1; n < mostOfLine && errors.Is(err, bufio.ErrBufferFull); n++ {
			text, err = lines.ReadSlice('\n')
			l.isJob = l.isJob || bytes.IndexByte(text, '\t') >= 0
		}
	}
	return l, err
}
