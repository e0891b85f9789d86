// Package printed keeps what the jobs of a list print: of many jobs in few files, each of
// one process. A file is text that can be searched, in frames:
//
//	=== multilock 1 "node7"
//	=== #17 attempt 1 at 2026-01-02T03:04:05.123456789Z out 6 "page7"
//	hello
//
// and after each frame a newline. How long a frame is, and whose, its first line says: so
// what jobs print may be anything, and the first lines are the index of the file. A frame is
// written with one write; one that is torn is the last of its file.
package printed

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stream is what of a job was printed: its standard output, its error, or both as one.
type Stream string

// The streams.
const (
	Out Stream = "out"
	Err Stream = "err"
)

// Head is the first line of a frame.
type Head struct {
	Seq     int       // the job's number in the list
	Attempt int       // at it, over all hosts
	Began   time.Time // when that began, by the clock of its host
	Stream  Stream
	Size    int // of what follows
	Name    string
}

const (
	// maxFrame is how much of a job's output is kept in memory, and the longest frame.
	maxFrame = 64 << 10
	// maxHead is longer than any first line: a name has 248 bytes.
	maxHead = 2 << 10
)

func (h Head) line() []byte {
	return fmt.Appendf(nil, "=== #%d attempt %d at %s %s %d %q\n", h.Seq, h.Attempt, h.Began.UTC().Format(time.RFC3339Nano), h.Stream, h.Size, h.Name)
}

// parseHead reads a first line without its end; ok is false if it is none of ours.
func parseHead(line []byte) (h Head, ok bool) {
	part := strings.SplitN(string(line), " ", 9)
	if len(part) != 9 || part[0] != "===" || part[2] != "attempt" || part[4] != "at" || !strings.HasPrefix(part[1], "#") {
		return Head{}, false
	}
	var errs [5]error
	h.Seq, errs[0] = strconv.Atoi(part[1][1:])
	h.Attempt, errs[1] = strconv.Atoi(part[3])
	h.Began, errs[2] = time.Parse(time.RFC3339Nano, part[5])
	h.Stream = Stream(part[6])
	h.Size, errs[3] = strconv.Atoi(part[7])
	h.Name, errs[4] = strconv.Unquote(part[8])
	return h, errs == [5]error{} && h.Seq > 0 && h.Attempt > 0 && h.Size > 0 && h.Size <= maxFrame && (h.Stream == Out || h.Stream == Err)
}

const preamble = "=== multilock 1 "

func firstLine(host string) []byte { return fmt.Appendf(nil, "%s%q\n", preamble, host) }

func parseFirst(line []byte) (host string, ok bool) {
	quoted, ok := bytes.CutPrefix(line, []byte(preamble))
	host, err := strconv.Unquote(string(quoted))
	return host, ok && err == nil
}
