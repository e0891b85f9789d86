package batch

import "errors"

// tally is what is known of the jobs of a list. The caller sees to it that one call runs
// at a time.
type tally struct {
	state []jobState
	counts
}

type jobState uint8

const (
	jobOpen jobState = iota
	jobDone
	jobFailed
)

// counts is how many jobs are in which state: open are all that have no final result.
type counts struct{ open, done, failed int }

// errNothingLeft says that every job has a final result.
var errNothingLeft = errors.New("nothing is left to be done")

func newTally(jobs int) tally {
	return tally{state: make([]jobState, jobs), counts: counts{open: jobs}}
}

// settle notes that a job has a final result. It reports false if that was known.
func (t *tally) settle(i int, as jobState) bool {
	if t.state[i] != jobOpen {
		return false
	}
	t.state[i] = as
	t.open--
	if as == jobDone {
		t.done++
	} else {
		t.failed++
	}
	return true
}

// openIn is how many jobs of a unit have no final result.
func (t *tally) openIn(u *unit) (n int) {
	for i := u.From - 1; i < u.To; i++ {
		if t.state[i] == jobOpen {
			n++
		}
	}
	return n
}
