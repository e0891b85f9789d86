package worker_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/scripts/benchmark/worker"
)

// recorder is a lock that nobody contends for, and that notes what was asked of it.
type recorder struct {
	calls   []string
	refuses bool
}

func (r *recorder) Acquire() error {
	if r.refuses {
		return errors.New("no lock today")
	}
	r.calls = append(r.calls, "acquire")
	return nil
}

func (r *recorder) Release() error {
	r.calls = append(r.calls, "release")
	return nil
}

func serve(t *testing.T, lock worker.Lock, commands ...string) ([]map[string]float64, error) {
	t.Helper()
	var out strings.Builder
	served := worker.Serve(lock, strings.NewReader(strings.Join(commands, "\n")), &out)
	var replies []map[string]float64
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var reply map[string]float64
		require.NoError(t, json.Unmarshal([]byte(line), &reply), line)
		replies = append(replies, reply)
	}
	return replies, served
}

func TestSaysReadyThenAnswersEachCommand(t *testing.T) {
	lock := &recorder{}
	replies, err := serve(t, lock, "acquire", "release")
	require.NoError(t, err)
	require.Len(t, replies, 3)
	require.Empty(t, replies[0], "the ready line")
	require.GreaterOrEqual(t, replies[2]["at"], replies[1]["at"])
	require.Equal(t, []string{"acquire", "release"}, lock.calls)
}

func TestCountsUnderTheLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a counter")
	require.NoError(t, os.WriteFile(file, []byte("40"), 0o600))
	lock := &recorder{}
	_, err := serve(t, lock, "count 2 "+file)
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "42", string(text))
	require.Equal(t, []string{"acquire", "release", "acquire", "release"}, lock.calls)
}

func TestCyclesCountsWhatItDid(t *testing.T) {
	lock := &recorder{}
	replies, err := serve(t, lock, "cycles 0.01")
	require.NoError(t, err)
	require.Len(t, lock.calls, int(2*replies[1]["cycles"]))
}

func TestAnErrorEndsTheWorker(t *testing.T) {
	_, err := serve(t, &recorder{refuses: true}, "acquire", "release")
	require.ErrorContains(t, err, "no lock today")
	_, err = serve(t, &recorder{}, "dance")
	require.ErrorContains(t, err, `unknown command "dance"`)
}
