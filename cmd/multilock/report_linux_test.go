package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A page is nothing for a terminal.
func TestReportOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	_, r := onTerminal(t, s.command("report"))
	r.Expect("write it to a file with -o FILE")
	require.Equal(t, 125, r.wait().code)
	_, r = onTerminal(t, s.command("report", "--json"))
	r.Expect(`"jobs": []`)
	require.Zero(t, r.wait().code)
}
