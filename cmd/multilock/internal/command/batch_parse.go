package command

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup/batch"
)

// Byte order marks that Windows editors write.
const (
	bomUTF8    = "\xef\xbb\xbf"
	bomUTF16LE = "\xff\xfe"
	bomUTF16BE = "\xfe\xff"
)

// readText reads a text file for a command, without its byte order mark.
func readText(r io.Reader, from, command string) (text string, hasMark bool, err error) {
	var all strings.Builder
	if _, err := io.Copy(&all, r); err != nil {
		return "", false, fmt.Errorf("read %s: %w", from, err)
	}
	text = all.String()
	if charset := wideCharset(text); charset != "" {
		return "", false, console.Usagef(command, "%s is %s, and a shell reads bytes: convert it to UTF-8 first, such as with: iconv -f %s -t UTF-8 OLD >NEW", from, charset, charset)
	}
	text, hasMark = strings.CutPrefix(text, bomUTF8)
	return text, hasMark, nil
}

// wideCharset names the encoding of a text in UTF-16 or UTF-32, "" for others. Without a byte order
// mark it looks for the NUL bytes of two ASCII characters.
func wideCharset(text string) string {
	isNUL := func(i int) bool { return len(text) >= 4 && text[i] == 0 && text[i+2] == 0 }
	switch {
	case strings.HasPrefix(text, bomUTF16LE+"\x00\x00"), strings.HasPrefix(text, "\x00\x00"+bomUTF16BE):
		return "UTF-32"
	case strings.HasPrefix(text, bomUTF16LE), strings.HasPrefix(text, bomUTF16BE):
		return "UTF-16"
	case isNUL(1) && !isNUL(0):
		return "UTF-16LE"
	case isNUL(0) && !isNUL(1):
		return "UTF-16BE"
	}
	return ""
}

// isRemark reports whether a line is empty or a comment.
func isRemark(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// lineReader parses the lines of a file.
type lineReader struct {
	list batchList
	// The number of the first line of each kind, 0 without one.
	named, unnamed, withCR, withoutCR, withSpace int32
	// suspect is the first line whose name looks like a part of a command.
	suspect int32
}

// parseLines parses lines: a command, or NAME, a tab and a command.
func parseLines(r io.Reader, from string, needs listNeeds) (batchList, error) {
	text, hasMark, err := readText(r, from, "batch")
	if err != nil {
		return batchList{}, err
	}
	most := strings.Count(text, "\n") + 1
	lines := lineReader{list: batchList{from: from, unit: "line", needs: needs, jobs: make([]batch.Job, 0, most), lines: make([]int32, 0, most)}}
	n := int32(0)
	for line := range strings.Lines(text) {
		n++
		lines.add(n, line)
	}
	if hasMark {
		lines.list.remarks = append(lines.list.remarks, "it begins with a byte order mark (BOM), which is no part of the first line")
	}
	lines.checkKinds()
	if len(lines.list.jobs) == 0 && len(lines.list.wrong) == 0 {
		return lines.list, console.Usagef("batch", "there are no jobs in %s", from)
	}
	lines.list.endBarriers()
	return lines.list, nil
}

// add parses a line with its line ending.
func (l *lineReader) add(n int32, text string) {
	if isRemark(text) {
		return
	}
	text, ended := strings.CutSuffix(text, "\n")
	text, hasCR := strings.CutSuffix(text, "\r")
	switch {
	case hasCR:
		first(&l.withCR, n)
	case ended: // the last line of a file may lack a newline
		first(&l.withoutCR, n)
	}
	if strings.Contains(text, "\r") {
		l.list.addProblem(n, `there is a carriage return (CR) within it: end each line with a newline alone, such as with: tr '\r' '\n' <OLD >NEW; a job that needs a CR fits into a list of --null`)
		return
	}
	if strings.HasPrefix(text, bomUTF8) {
		l.list.addProblem(n, "it begins with a byte order mark (BOM), as where two files were put together: remove it, such as with: sed -i '"+strconv.Itoa(int(n))+`s/^\xef\xbb\xbf//' FILE`)
		return
	}
	switch {
	case text == barrierLine:
		l.list.addBarrier()
	case isShellLine(text):
		l.list.setShell(n, text)
	case isNeedsLine(text):
		l.list.needs.add(n, text, len(l.list.jobs)+1)
	default:
		l.addJob(n, text)
	}
}

func (l *lineReader) addJob(n int32, text string) {
	job := batch.Job{Command: text}
	name, command, named := strings.Cut(text, "\t")
	if !named {
		first(&l.unnamed, n)
		l.list.add(n, job)
		return
	}
	first(&l.named, n)
	l.list.add(-n, batch.Job{Name: name, Command: command})
	if strings.Contains(name, " ") {
		first(&l.withSpace, n)
	}
	if strings.ContainsAny(name, "'\"`$|&;<>\\") {
		first(&l.suspect, n)
	}
}

const tabAdvice = `write a tab within a command as "$(printf '\t')", or give the list as NAME NUL COMMAND NUL with --null`

// checkKinds rejects mixed lists, in which a part of a command could be taken for a name.
func (l *lineReader) checkKinds() {
	switch {
	case l.withCR > 0 && l.withoutCR > 0:
		l.list.addProblem(l.withCR, fmt.Sprintf(`it ends with a carriage return (CR LF), and line %d with a newline alone: end all alike, such as with: sed -i 's/\r$//' FILE (or dos2unix FILE); a job that needs a CR fits into a list of --null`, l.withoutCR))
	case l.withCR > 0:
		l.list.remarks = append(l.list.remarks, "its lines end with CR LF, as Windows writes them; the CR is no part of a command")
	}
	if n := l.withSpace; n > 0 {
		l.list.remarks = append(l.list.remarks, fmt.Sprintf("the text before a tab is the name of a job, and the name on line %d has a space", n))
	}
	switch {
	case l.named > 0 && l.unnamed > 0:
		l.list.addProblem(max(l.named, l.unnamed), fmt.Sprintf("a list is NAME<TAB>COMMAND on each line, or a command alone on each, and line %d has a tab and line %d has none: name all jobs or none; %s", l.named, l.unnamed, tabAdvice))
	case l.suspect > 0:
		l.list.addProblem(l.suspect, "the text before its first tab is the name of the job, and looks like a part of a command: "+tabAdvice)
	}
}

// first sets line to the first number.
func first(line *int32, n int32) {
	if *line == 0 {
		*line = n
	}
}

// parsePairs parses repeated NAME NUL COMMAND NUL. Other bytes have no special meaning. A job with
// an empty name is named by its number.
func parsePairs(r io.Reader, from string, needs listNeeds) (batchList, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return batchList{}, fmt.Errorf("read the list of jobs from %s: %w", from, err)
	}
	ends := bytes.Count(text, []byte{0})
	switch {
	case len(text) == 0:
		return batchList{}, console.Usagef("batch", "there are no jobs in %s", from)
	case text[len(text)-1] != 0:
		return batchList{}, console.Usagef("batch", "%s does not end with a NUL byte, so a part may be missing: with --null write NAME NUL COMMAND NUL for each job", from)
	case ends%2 != 0:
		return batchList{}, console.Usagef("batch", "%s has %d fields, an odd number: with --null write NAME NUL COMMAND NUL for each job; NAME may be empty", from, ends)
	}
	list := batchList{from: from, unit: "job", needs: needs, jobs: make([]batch.Job, 0, ends/2), lines: make([]int32, 0, ends/2)}
	left := string(text)
	for n := int32(1); left != ""; n++ {
		var job batch.Job
		job.Name, left, _ = strings.Cut(left, "\x00")
		job.Command, left, _ = strings.Cut(left, "\x00")
		if job.Name == "" {
			list.add(n, job)
		} else {
			list.add(-n, job)
		}
	}
	return list, nil
}
