//go:build unix

package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// longEnough is far beyond what passes.
const longEnough = 30 * time.Second

// A reader who reads gets all of it, and each one's messages in their order.
func TestMessagesReachTheirReader(t *testing.T) {
	t.Parallel()
	const speakers, each = 8, 500
	var m messages
	var got strings.Builder // written by one goroutine at a time
	var all sync.WaitGroup
	for speaker := range speakers {
		all.Go(func() {
			for i := range each {
				m.add(&got, fmt.Sprintf("%d %d\n", speaker, i))
			}
		})
	}
	all.Wait()
	m.await(longEnough)
	require.Nil(t, m.pending())
	var next [speakers]int
	for line := range strings.Lines(got.String()) {
		var speaker, i int
		_, err := fmt.Sscanf(line, "%d %d\n", &speaker, &i)
		require.NoError(t, err, line)
		require.Equal(t, next[speaker], i, "speaker %d", speaker)
		next[speaker]++
	}
	for _, told := range next {
		require.Equal(t, each, told)
	}
}

// What is kept for a reader who does not read is bounded; when he reads again he is
// told how much is missing, and where.
func TestMessagesThatNobodyReads(t *testing.T) {
	t.Parallel()
	var m messages
	reader, writer := io.Pipe()
	line := strings.Repeat("x", 1023) + "\n"
	m.add(writer, "first\n")
	for range 4 * maxWaiting / len(line) {
		m.add(writer, line)
	}
	for range 10_000 {
		m.await(time.Millisecond) // that is waited for once
	}
	require.NotNil(t, m.pending())
	require.LessOrEqual(t, len(m.waiting), maxWaiting)

	go func() {
		m.await(longEnough)
		_ = writer.Close()
	}()
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Less(t, len(text), 3*maxWaiting, "what is being written, and what waits")
	require.True(t, strings.HasPrefix(string(text), "first\n"+line))
	require.Regexp(t, `multilock: \d+ messages are missing here: nobody read them\n$`, string(text))
}
