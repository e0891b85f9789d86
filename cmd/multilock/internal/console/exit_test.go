//go:build unix

package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// 124 is for limits set by the user. A server that does not answer in time is a failure.
func TestDeadlinesOfServersAreNoLimits(t *testing.T) {
	t.Parallel()
	slow := &source.OpError{Source: "x", Op: "ask", Err: fmt.Errorf("no answer: %w", context.DeadlineExceeded)}
	require.Equal(t, ExitTimeLimit, ExitCode(context.DeadlineExceeded))
	require.Equal(t, ExitFailure, ExitCode(slow))
	require.Equal(t, ExitUnsure, ExitCode(errors.Join(multilock.ErrUnsure, slow)))
	require.Equal(t, ExitTimeLimit, ExitCode(errors.Join(ErrWaitOver, slow)))
	require.Equal(t, ExitTimeLimit, ExitCode(&multilock.LostError{Name: "x", Err: multilock.ErrOver}), "that is how such a lock ends")
}

// Of several errors the most specific one for the user counts; the job's own code only without other errors.
func TestWhichErrorCounts(t *testing.T) {
	t.Parallel()
	lost := &multilock.LostError{Name: "x", Err: errors.New("broken")}
	held := &multilock.HeldError{Name: "x"}
	failed := &JobError{Result: job.Result{Code: 3}}
	for code, err := range map[int]error{
		ExitOK:          nil,
		3:               failed,
		127:             &job.NotFoundError{Command: "x"},
		126:             fmt.Errorf("start: %w", &job.NotRunnableError{Command: "x"}),
		ExitFailure:     Usagef("run", "no command"),
		ExitLost:        errors.Join(lost, failed),
		ExitHeld:        fmt.Errorf("take: %w", held),
		ExitUnsure:      errors.Join(multilock.ErrUnsure, failed),
		ExitNotDone:     errors.Join(lockgroup.ErrNotDone, lost),
		ExitTimeLimit:   errors.Join(lost, &CodedError{Code: ExitTimeLimit, Text: "too long"}, failed),
		ExitStarved:     &CodedError{Code: ExitStarved, Text: "refused", Err: held},
		7:               &RefusedError{Code: 7, Err: held},
		ExitSignal + 15: errors.Join(held, Signalled(syscall.SIGTERM)),
		ExitSignal + 2:  errors.Join(lockgroup.ErrNotDone, Signalled(os.Interrupt)),
	} {
		require.Equal(t, code, ExitCode(err), "%v", err)
	}
	require.Equal(t, ExitTimeLimit, ExitCode(errors.Join(ErrWaitOver, held)))
	require.Equal(t, ExitLost, ExitCode(errors.Join(&job.NotFoundError{Command: "x"}, lost)))
}

// longEnough is a timeout far above any normal duration.
const longEnough = 30 * time.Second

// A reader that reads gets all messages, those of each writer in order.
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

// Messages for a reader that does not read are limited; when it reads again it sees how many are missing,
// and where.
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
		m.await(time.Millisecond) // only the first call waits
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
	require.Regexp(t, `multilock: \d+ messages are missing here, because they were not read in time\n$`, string(text))
}
