package batch

import (
	"errors"
)

// jobStates are the known states of the jobs of a list. Calls must not run concurrently.
type jobStates struct {
	state []jobState
	counts
}

type jobState uint8

const (
	jobOpen jobState = iota
	jobDone
	jobFailed
	jobRemoved // from the list
)

// counts counts jobs by state; open jobs have no final result.
type counts struct{ open, done, failed int }

// errNothingLeft means that no job is left to begin.
var errNothingLeft = errors.New("nothing is left to be done")

func newJobStates(jobs int) jobStates {
	return jobStates{state: make([]jobState, jobs), counts: counts{open: jobs}}
}

// settle records that a job has a final result. It returns false if it had one before.
func (t *jobStates) settle(i int, as jobState) bool {
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

// remove records that an open job is no longer in the list.
func (t *jobStates) remove(i int) {
	t.state[i] = jobRemoved
	t.open--
}

// removedIn counts the jobs from number from to number to that are no longer in the list.
func (t *jobStates) removedIn(from, to int) (n int) {
	for _, state := range t.state[from-1 : to] {
		if state == jobRemoved {
			n++
		}
	}
	return n
}

// openIn counts the jobs of a unit without a final result.
func (t *jobStates) openIn(u *unit) (n int) {
	for i := u.From - 1; i < u.To; i++ {
		if t.state[i] == jobOpen {
			n++
		}
	}
	return n
}
