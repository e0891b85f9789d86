package command

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Events of any size, and from any writer: the last ones are kept, within the memory limit.
func TestLatestFit(t *testing.T) {
	const long = 1 << 20
	text := strings.Repeat("x", long)
	for what, e := range map[string]source.Event{
		"command": {Command: text},
		"host":    {By: process.Identity{Host: text}},
		"boot":    {By: process.Identity{Boot: text}},
		"holder":  {Holder: &source.Holder{Identity: process.Identity{Machine: text}}},
		"chunk":   {Chunk: &source.Chunk{Returned: make([]source.Range, long/16)}},
	} {
		t.Run(what, func(t *testing.T) {
			var last latest
			for n := range 1000 {
				e.Name = strconv.Itoa(n)
				last.add(e)
			}
			kept := last.events()
			require.LessOrEqual(t, len(kept), maxLatest/long)
			require.Greater(t, len(kept), maxLatest/long/2)
			require.Equal(t, "999", kept[len(kept)-1].Name)
			require.Equal(t, 1000, len(kept)+last.over)
		})
	}
	last := latest{most: 3}
	for n := range 1000 {
		last.add(source.Event{Name: strconv.Itoa(n)})
	}
	require.Len(t, last.events(), 3)
	require.Equal(t, "997", last.events()[0].Name)
}

// If fewer events are shown than requested, that is reported.
func TestLimitThatDoesNotFit(t *testing.T) {
	o := &historyOptions{}
	require.NoError(t, o.limit.Set("1000"))
	text := strings.Repeat("x", 1<<20)
	history := func(yield func(source.Event, error) bool) {
		for range 1000 {
			if !yield(source.Event{Command: text}, nil) {
				return
			}
		}
	}
	for _, backward := range []bool{false, true} {
		var left []string
		shown := 0
		for range o.asked(history, backward, func(what string) { left = append(left, what) }) {
			shown++
		}
		require.Less(t, shown, 1000)
		require.Len(t, left, 1)
		require.Contains(t, left[0], fmt.Sprintf("the last %d events", shown))
	}
}

// If the latest event comes first, no more events are read than shown.
func TestLimitEndsTheReading(t *testing.T) {
	o := &historyOptions{}
	require.NoError(t, o.limit.Set("3"))
	read := 0
	history := func(yield func(source.Event, error) bool) {
		for read = 1; yield(source.Event{Name: strconv.Itoa(-read)}, nil); read++ {
		}
	}
	var names []string
	for e := range o.asked(history, true, func(string) {}) {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"-3", "-2", "-1"}, names)
	require.LessOrEqual(t, read, 4)
}
