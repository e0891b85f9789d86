package lockgroup

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

// ListStages reads the names of the jobs in the group's list, in the stages into which barriers
// divide it; there are none if the group has no list.
func ListStages(ctx context.Context, src source.ManifestReader) (stages [][]string, err error) {
	var names []string
	var barriers []int
	inName := strings.NewReplacer(`\\`, `\`, `\n`, "\n")
	err = eachLineOfList(ctx, src, func(_ int, field []byte, isJob, _ bool) bool {
		if isJob {
			names = append(names, inName.Replace(string(field)))
		} else {
			barriers = append(barriers, barriersIn(field)...)
		}
		return true
	})
	if err != nil || len(names) == 0 {
		return nil, err
	}
	done := 0
	for _, after := range append(barriers, len(names)) {
		if after > done && after <= len(names) {
			stages, done = append(stages, names[done:after]), after
		}
	}
	return stages, nil
}

// barriersIn reads from a head behind which jobs barriers stand. Its parts begin with a #.
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

// eachLineOfList tells of the lines of the group's list, one after the other, until tell returns
// false: of a job with its number and its name as it stands there; of a head, of the list or of
// what continues it, which has no tab, with all of it. First says that it is the first line of all.
func eachLineOfList(ctx context.Context, src source.ManifestReader, tell func(number int, field []byte, isJob, first bool) bool) error {
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
		field, tab, err := firstField(lines)
		switch {
		case errors.Is(err, io.EOF), first && errors.Is(err, bufio.ErrBufferFull):
			return nil
		case err != nil:
			return fmt.Errorf("the group's list of jobs, behind job %d: %w", number, err)
		case tab:
			number++
		}
		if !tell(number, field, tab, first) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// mostOfLine bounds what is read of a line, in buffers. No job has a longer line, and a sparse
// file would be read for hours.
const mostOfLine = 64

// firstField reads a line, and keeps what is in it before the first tab, of a long one its beginning.
func firstField(lines *bufio.Reader) (field []byte, tab bool, err error) {
	line, err := lines.ReadSlice('\n')
	field, _, tab = bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\t'})
	if errors.Is(err, bufio.ErrBufferFull) {
		field = bytes.Clone(field)
		for n := 1; n < mostOfLine && errors.Is(err, bufio.ErrBufferFull); n++ {
			line, err = lines.ReadSlice('\n')
			tab = tab || bytes.IndexByte(line, '\t') >= 0
		}
	}
	return field, tab, err
}
