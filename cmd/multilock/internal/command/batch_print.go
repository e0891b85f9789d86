package command

import (
	"bytes"
	"io"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/lockgroup/batch"
)

// printing prints the output of jobs as it arrives, for --print and --tag.
type printing struct {
	tag      bool
	out, err io.Writer

	mu   sync.Mutex
	gone bool // the output was closed; jobs and logs continue
}

// of makes the printer of one stream, nil without --print and --tag.
func (p *printing) of(a batch.Attempt, stream printed.Stream) *printedLines {
	if p == nil {
		return nil
	}
	l := &printedLines{all: p, to: p.out}
	if stream == printed.Err {
		l.to = p.err
	}
	if p.tag {
		l.tag = a.Name + "\t"
	}
	return l
}

// print writes whole lines, one job at a time.
func (p *printing) print(to io.Writer, lines []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	_, err := to.Write(lines)
	p.gone = err != nil
}

// maxPrintedLine bounds the memory for an unfinished line.
const maxPrintedLine = 1 << 20

// printedLines prints one stream of a job in whole lines.
type printedLines struct {
	all  *printing
	to   io.Writer
	tag  string
	rest []byte // an unfinished line
}

// add prints the complete lines of the output.
func (l *printedLines) add(data []byte) {
	if l == nil {
		return
	}
	l.rest = append(l.rest, data...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 && len(l.rest) < maxPrintedLine {
		return
	}
	if end == 0 {
		l.finish()
		return
	}
	l.print(l.rest[:end])
	l.rest = append([]byte(nil), l.rest[end:]...)
}

// finish ends and prints an unfinished line.
func (l *printedLines) finish() {
	if l == nil || len(l.rest) == 0 {
		return
	}
	l.print(append(l.rest, '\n'))
	l.rest = nil
}

func (l *printedLines) print(lines []byte) {
	if l.tag == "" {
		l.all.print(l.to, lines)
		return
	}
	var tagged bytes.Buffer
	for line := range bytes.Lines(lines) {
		tagged.WriteString(l.tag)
		tagged.Write(line)
	}
	l.all.print(l.to, tagged.Bytes())
}
