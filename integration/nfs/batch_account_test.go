package nfs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// account is what a witness has written, by job.
type account map[string]*jobAccount

// jobAccount is what became of one job.
type jobAccount struct {
	runs    []jobRun
	commits int
	late    []string // workers that began the job after that
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

// runs counts how often jobs were begun.
func (a account) runs() (n int) {
	for _, j := range a {
		n += len(j.runs)
	}
	return n
}

// circumstances are what an account is judged by.
type circumstances struct {
	jobs    []string
	results map[string]multilock.Result
	struck  map[string]int  // how often a worker was killed or cut off, by its name
	broken  map[string]bool // locks, by token
	width   int             // how many jobs a worker has in its hands
}

// faults finds what must not be: a job with no result or with two, or whose result
// is not that of a run which ended; a run after the result was in place; and a
// run without a result whose worker nobody struck and whose lock nobody broke. A
// blow may cost as many runs as the worker had jobs in its hands.
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
		if !r.OK() || !slices.ContainsFunc(j.runs, func(run jobRun) bool { return run.ended && run.token == r.Token }) {
			faults = append(faults, fmt.Sprintf("the result of %s is of no run that ended: %+v, runs %v", name, r, j.runs))
		}
		for _, run := range j.runs {
			switch {
			case run.token == r.Token:
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

// What an account is convicted of.
func TestBatchAccount(t *testing.T) {
	const good = "start a h1.1 one\nend a h1.1 one\ncommit a\n"
	for text, found := range map[string]int{
		good:                           0,
		"start a h2.1 other\n" + good:  0, // a run that was lost with a killed worker
		"start a h3.1 held\n" + good:   0, // and one whose lock was broken
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
