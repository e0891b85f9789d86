package nfs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// witness is a file that is not on the share, and the same on all hosts. Each run of a job appends
// a line at its start and one at its end. The lines are in the order of the events, since one
// kernel appends them all, each with one write.
//
//	start NAME WORKER TOKEN
//	end NAME WORKER TOKEN
//	commit NAME                   a result has appeared on the server's disk
type witness struct{ path string }

// workerVariable passes a job the name of its worker.
const workerVariable = "WITNESS_WORKER"

func newWitness(t testing.TB) *witness {
	t.Helper()
	w := &witness{filepath.Join(outside(t), "witness")}
	require.NoError(t, os.WriteFile(w.path, nil, 0o666))
	return w
}

// shell returns a command line that records its start and its end in the witness.
func (w *witness) shell(work string) string {
	tell := fmt.Sprintf(`$MULTILOCK_NAME $%s $MULTILOCK_TOKEN" >>%s`, workerVariable, w.path)
	return fmt.Sprintf(`echo "start %s; %s; echo "end %s`, tell, work, tell)
}

func (w *witness) tell(words ...string) error {
	file, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(words, " ") + "\n")
	return errors.Join(err, file.Close())
}

func (w *witness) read(t testing.TB) account {
	t.Helper()
	text, err := os.ReadFile(w.path)
	require.NoError(t, err)
	a, err := readAccount(string(text))
	require.NoError(t, err)
	return a
}

// commits counts the recorded results.
func (w *witness) commits(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(w.path)
	require.NoError(t, err)
	return bytes.Count(text, []byte("commit "))
}

// watch records each result when it appears on the server's own disk, which is when the server
// executes the rename, whichever reply reaches whichever host. The line may be written late, so the
// events on the lines after it certainly happened after the result.
func (w *witness) watch(t testing.TB, results string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	_, err = unix.InotifyAddWatch(fd, results, unix.IN_MOVED_TO)
	require.NoError(t, err)
	events := os.NewFile(uintptr(fd), "inotify")
	var reader sync.WaitGroup
	reader.Go(func() {
		if err := w.relay(events, results); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("watch the results: %v", err)
		}
	})
	t.Cleanup(func() {
		_ = events.Close()
		reader.Wait()
	})
}

// relay records the events. The result of a single job is never replaced. The result of a chunk is,
// so relay records each of its jobs only once.
func (w *witness) relay(events *os.File, results string) error {
	buffer, told := make([]byte, 64<<10), map[string]bool{}
	for {
		n, err := events.Read(buffer)
		if err != nil {
			return err
		}
		for rest := buffer[:n]; len(rest) > 0; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			end := unix.SizeofInotifyEvent + int(event.Len)
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:end], "\x00"))
			if event.Mask&unix.IN_Q_OVERFLOW != 0 {
				return errors.New("events were lost")
			}
			for _, job := range jobsIn(results, name) {
				if _, chunk := joblist.ParseChunkName(name); chunk && told[job] {
					continue
				}
				told[job] = true
				if err := w.tell("commit", job); err != nil {
					return err
				}
			}
			rest = rest[end:]
		}
	}
}

// jobsIn returns the jobs that a result reports as ended, except those to be retried.
func jobsIn(results, name string) (jobs []string) {
	if _, chunk := joblist.ParseChunkName(name); !chunk {
		return []string{name}
	}
	text, _ := os.ReadFile(filepath.Join(results, name)) // a later result may have replaced it
	for line := range strings.Lines(string(text)) {
		var job source.ChunkJob
		if json.Unmarshal([]byte(line), &job) == nil && job.Number > 0 && !job.Retry {
			jobs = append(jobs, job.Name)
		}
	}
	return jobs
}

// account is the content of a witness, by job.
type account map[string]*jobAccount

// jobAccount is what happened to one job.
type jobAccount struct {
	runs    []jobRun
	commits int
	late    []string // workers that started the job after its result
}

type jobRun struct {
	worker, token string
	ended         bool
}

func readAccount(text string) (account, error) {
	a := account{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 4 && (len(words) != 2 || words[0] != "commit") {
			return nil, fmt.Errorf("the witness wrote %q", line)
		}
		name := words[1]
		if a[name] == nil {
			a[name] = &jobAccount{}
		}
		a[name].note(words[0], words[2:])
	}
	return a, nil
}

func (j *jobAccount) note(what string, who []string) {
	switch what {
	case "commit":
		j.commits++
	case "start":
		if j.commits > 0 {
			j.late = append(j.late, who[0])
		}
		j.runs = append(j.runs, jobRun{worker: who[0], token: who[1]})
	case "end":
		for i := range j.runs {
			j.runs[i].ended = j.runs[i].ended || j.runs[i].token == who[1]
		}
	}
}

// runs counts how often jobs were started.
func (a account) runs() (n int) {
	for _, j := range a {
		n += len(j.runs)
	}
	return n
}

// circumstances are the facts by which an account is judged.
type circumstances struct {
	jobs    []string
	results map[string]multilock.Result
	struck  map[string]int  // how often a worker was killed or cut off, by name
	broken  map[string]bool // tokens of broken locks
	width   int             // how many jobs a worker runs at once or has not recorded yet
}

// faults returns the violations: a job with no result or with two, or with the result of a run that
// did not end; a run after the result was in place; and a run without a result whose worker was not
// struck and whose lock was not broken. One fault may waste as many runs as the worker had jobs in
// progress.
func (a account) faults(c circumstances) (faults []string) {
	wasted := map[string]int{}
	for _, name := range c.jobs {
		j, r := a[name], c.results[name]
		if j == nil {
			faults = append(faults, name+" was never run")
			continue
		}
		if j.commits != 1 {
			faults = append(faults, fmt.Sprintf("%d results of %s came into place", j.commits, name))
		}
		for _, worker := range j.late {
			faults = append(faults, fmt.Sprintf("%s began %s when its result was in place", worker, name))
		}
		of := slices.IndexFunc(j.runs, func(run jobRun) bool { return run.ended && (run.token == r.Token || r.Token == "") })
		if !r.OK() || of < 0 { // an earlier holder's record has only the host name
			faults = append(faults, fmt.Sprintf("the result of %s is of no run that ended: %+v, runs %v", name, r, j.runs))
		}
		for i, run := range j.runs {
			switch {
			case i == of, run.token == r.Token:
			case c.struck[run.worker] > 0:
				wasted[run.worker]++
			case !c.broken[run.token]:
				faults = append(faults, fmt.Sprintf("%s ran %s for nothing, and lived", run.worker, name))
			}
		}
	}
	for worker, n := range wasted {
		if n > c.width*c.struck[worker] {
			faults = append(faults, fmt.Sprintf("%s was struck, and %d runs with it", worker, n))
		}
	}
	return faults
}

// Each kind of violation in an account is detected.
// Rule: none (test helper)
func TestBatchAccount(t *testing.T) {
	const good = "start a h1.1 one\nend a h1.1 one\ncommit a\n"
	for text, found := range map[string]int{
		good:                           0,
		"start a h2.1 other\n" + good:  0, // a run lost with a killed worker
		"start a h3.1 held\n" + good:   0, // a run whose lock was broken
		"":                             1,
		good + "commit a\n":            1,
		good + "start a h2.1 other\n":  1,
		"start a h3.1 other\n" + good:  1,
		"start a h1.1 one\ncommit a\n": 1,
		"start a h1.1 two\nend a h1.1 two\ncommit a\n": 2,
		"start a h2.1 2\nstart a h2.1 3\n" + good:      1,
	} {
		a, err := readAccount(text)
		require.NoError(t, err)
		faults := a.faults(circumstances{
			jobs: []string{"a"}, results: map[string]multilock.Result{"a": {Token: "one"}}, width: 1,
			struck: map[string]int{"h2.1": 1}, broken: map[string]bool{"held": true},
		})
		require.Len(t, faults, found, "%s: %q", text, faults)
	}
	_, err := readAccount("start a\n")
	require.Error(t, err)
}
