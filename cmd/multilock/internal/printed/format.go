// Package printed stores the output of the jobs of a list in few files, one or more for each process.
// A file is searchable text in frames:
//
//	=== multilock 1 "node7"
//	=== #17 attempt 1 at 2026-01-02T03:04:05.123456789Z out 6 "page7"
//	hello
//
// and a newline after each frame. The first line of a frame has the frame's length and its job, so
// output may contain any bytes, and the first lines are the index of the file. A frame is written
// with one write; only the last frame of a file may be truncated.
package printed

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stream is the standard output or the standard error of a job; Out is also used for both together.
type Stream string

// The streams.
const (
	Out Stream = "out"
	Err Stream = "err"
	end Stream = "end" // of a run; its content is the run's outcome
)

// Head is the first line of a frame.
type Head struct {
	Seq     int       // the job's number in the list, or the number of a run
	Attempt int       // counted across all hosts
	Began   time.Time // the attempt, by the clock of its host
	Stream  Stream
	Size    int // of the output that follows
	Name    string
}

const (
	// maxFrame is the maximum size of a frame, and of a job's output in memory.
	maxFrame = 64 << 10
	// maxHead is longer than any first line: a name has at most 248 bytes.
	maxHead = 2 << 10
)

func (h Head) line() []byte {
	return fmt.Appendf(nil, "=== #%d attempt %d at %s %s %d %q\n", h.Seq, h.Attempt, h.Began.UTC().Format(time.RFC3339Nano), h.Stream, h.Size, h.Name)
}

// parseHead parses the first line of a frame, without its newline.
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
	return h, errs == [5]error{} && h.Seq > 0 && h.Attempt > 0 && h.Size >= 0 && h.Size <= maxFrame
}

// isOutput reports whether a frame has output of a job.
func (h Head) isOutput() bool { return h.Size > 0 && (h.Stream == Out || h.Stream == Err) }

const preamble = "=== multilock 1 "

func firstLine(host string) []byte { return fmt.Appendf(nil, "%s%q\n", preamble, host) }

func parseFirst(line []byte) (host string, ok bool) {
	quoted, ok := bytes.CutPrefix(line, []byte(preamble))
	host, err := strconv.Unquote(string(quoted))
	return host, ok && err == nil
}
