package explore

import (
	"math/bits"
	"slices"

	"github.com/multilock/go/internal/simnfs"
)

// fork has the alternative choices of equal cost at one place in a schedule. There are many forks, so they
// are small.
type fork struct {
	trunk               *trunk
	from                uint32 // the state in which the choice is made, if known
	next                uint32 // of the open or held forks in the same list
	choices             uint16
	at, rests           uint16 // the place, and the number of rests before it
	faults, preemptions int8   // cost of the resulting schedule
}

// trunk is the common part of schedules that differ in one choice from one that was played: its given
// choices, and the states at its rests. A trunk is stored as the difference from the trunk of the schedule
// from which that one branched off.
type trunk struct {
	above  *trunk // nil for the schedule without given choices
	rests  []simnfs.Sum
	at     uint16 // the place of its last choice, and the number of rests before it
	rested uint16
	choice uint8
}

// given returns the choices of a trunk and one more.
func (t *trunk) given(at, choice int) Choices {
	given := Choices{at: choice}
	for ; t.above != nil; t = t.above {
		given[int(t.at)] = int(t.choice)
	}
	return given
}

// knew returns the states at the first rests.
func (t *trunk) knew(rests int) []simnfs.Sum {
	if t.above == nil {
		return slices.Clone(t.rests[:rests])
	}
	return append(t.above.knew(int(t.rested)), t.rests[:rests-int(t.rested)]...)
}

// prefix is the start of a schedule, whose rest has the default choices: a fork with one of its choices.
// The first schedule has neither.
type prefix struct {
	fork
	choice uint8
}

// take takes one choice from a fork.
func (f *fork) take() prefix {
	choice := bits.TrailingZeros16(f.choices)
	f.choices &^= 1 << choice
	return prefix{*f, uint8(choice)} //nolint:gosec // a few
}

// length returns the number of given choices.
func (p *prefix) length() int {
	if p.trunk == nil {
		return 0
	}
	return int(p.at) + 1
}

// schedule returns the schedule to play.
func (p *prefix) schedule() schedule {
	if p.trunk == nil {
		return schedule{given: Choices{}}
	}
	return schedule{given: p.trunk.given(int(p.at), int(p.choice)), length: p.length(), from: p.from, rests: p.trunk.knew(int(p.rests))}
}

// grows returns the trunk for schedules that branch off from this one after it was played.
func (p *prefix) grows(rests []simnfs.Sum) *trunk {
	return &trunk{above: p.trunk, at: p.at, choice: p.choice, rested: p.rests, rests: slices.Clone(rests[p.rests:])}
}

// forks are all open or held forks, in linked lists. A list is the number of its last fork.
type forks struct {
	arena[fork]
	free uint32
}

// push adds a fork to a list.
func (all *forks) push(list *uint32, f fork) {
	number := all.free
	if number == 0 {
		number = all.add()
	} else {
		all.free = all.at(number).next
	}
	f.next = *list
	*all.at(number), *list = f, number
}

// pop removes the last fork of a list.
func (all *forks) pop(list *uint32) fork {
	number := *list
	f := *all.at(number)
	*list = f.next
	*all.at(number) = fork{next: all.free}
	all.free = number
	return f
}
