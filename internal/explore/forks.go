package explore

import (
	"math/bits"
	"slices"

	"github.com/multilock/go/internal/simnfs"
)

// fork are the choices at one place in a schedule that were not made there, and cost the same. There are
// many, so a fork is small.
type fork struct {
	trunk               *trunk
	from                uint32 // the state in which the choice is made, if that is known
	next                uint32 // of the forks that are open, or held, with this one
	choices             uint16
	at, rests           uint16 // the place, and how often somebody had rested before
	faults, preemptions int8   // what comes of it takes
}

// trunk is what schedules have in common that differ from one that was played in one choice: what that
// was given, and what those who rested knew. It is made of the trunk of the schedule from which that one
// differed, so it is told by how it does.
type trunk struct {
	above  *trunk // nil: of the schedule without a choice
	rests  []simnfs.Sum
	at     uint16 // the place of its last choice, and how often somebody had rested before
	rested uint16
	choice uint8
}

// given are the choices of a trunk, and one more.
func (t *trunk) given(at, choice int) Choices {
	given := Choices{at: choice}
	for ; t.above != nil; t = t.above {
		given[int(t.at)] = int(t.choice)
	}
	return given
}

// knew is what the first so many knew who rested.
func (t *trunk) knew(rests int) []simnfs.Sum {
	if t.above == nil {
		return slices.Clone(t.rests[:rests])
	}
	return append(t.above.knew(int(t.rested)), t.rests[:rests-int(t.rested)]...)
}

// prefix is how a schedule begins, and of which the rest is the default. It is a fork's, and one choice
// of its; the first one has neither.
type prefix struct {
	fork
	choice uint8
}

// take takes one choice off a fork.
func (f *fork) take() prefix {
	choice := bits.TrailingZeros16(f.choices)
	f.choices &^= 1 << choice
	return prefix{*f, uint8(choice)} //nolint:gosec // a few
}

// length is that of what is given.
func (p *prefix) length() int {
	if p.trunk == nil {
		return 0
	}
	return int(p.at) + 1
}

// schedule is what is to be played.
func (p *prefix) schedule() schedule {
	if p.trunk == nil {
		return schedule{given: Choices{}}
	}
	return schedule{given: p.trunk.given(int(p.at), int(p.choice)), length: p.length(), from: p.from, rests: p.trunk.knew(int(p.rests))}
}

// grows is the trunk of what differs from a schedule that was played.
func (p *prefix) grows(rests []simnfs.Sum) *trunk {
	return &trunk{above: p.trunk, at: p.at, choice: p.choice, rested: p.rests, rests: slices.Clone(rests[p.rests:])}
}

// forks are those that are open, or held: each list of them begins with the last, and is told by that one's number.
type forks struct {
	arena[fork]
	free uint32
}

// push puts a fork before a list.
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

// pop takes the last fork off a list.
func (all *forks) pop(list *uint32) fork {
	number := *list
	f := *all.at(number)
	*list = f.next
	*all.at(number) = fork{next: all.free}
	all.free = number
	return f
}
