package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/lockgroup/batch"
)

// However a job's output arrives, it is printed in whole lines, and completely.
func TestPrintedLines(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	p := &printing{tag: true, out: &out, err: &err}
	a, b := p.of(batch.Attempt{Name: "a"}, printed.Out), p.of(batch.Attempt{Name: "b"}, printed.Err)
	for _, piece := range []string{"on", "e\ntwo\nth", "", "ree"} {
		a.add([]byte(piece))
		b.add([]byte("x"))
	}
	a.finish()
	b.finish()
	a.finish()
	require.Equal(t, "a\tone\na\ttwo\na\tthree\n", out.String())
	require.Equal(t, "b\txxxx\n", err.String())

	p.tag = false
	long := p.of(batch.Attempt{}, printed.Out)
	long.add([]byte(strings.Repeat("y", maxPrintedLine)))
	require.Empty(t, long.rest, "a line without an end is not kept for ever")
	var none *printing
	none.of(batch.Attempt{}, printed.Out).add([]byte("nothing"))
}

type brokenPipe struct{ writes int }

func (b *brokenPipe) Write([]byte) (int, error) { b.writes++; return 0, errors.New("broken pipe") }

func TestPrintedForNobody(t *testing.T) {
	t.Parallel()
	var out brokenPipe
	l := (&printing{out: &out}).of(batch.Attempt{}, printed.Out)
	l.add([]byte("one\n"))
	l.add([]byte("two\n"))
	require.Equal(t, 1, out.writes)
}
