package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/multilock/go/multilock/source"
)

// SwapEvent is one line of what a process records about its swaps of a register, and its peeks at it. Every
// swap has a distinct value.
type SwapEvent struct {
	// Op is "begin" before a swap; then "end" when it has returned, "fail" if it was not made, "unsure" if
	// that is unknown; and "peek" for a peek that has returned.
	Op    string
	Value string
	// Old is the replaced value, "" if there was none; Number is the swap's.
	Old    string
	Number uint64
	Time   time.Duration // of Now
	Error  string
}

// SwapAnswer is the event of a swap that has just returned.
func SwapAnswer(value string, old []byte, number uint64, err error) SwapEvent {
	e := SwapEvent{Op: "end", Value: value, Old: string(old), Number: number, Time: Now()}
	if err == nil {
		return e
	}
	e.Op, e.Error = "fail", err.Error()
	if errors.Is(err, source.ErrUnsure) {
		e.Op = "unsure"
	}
	return e
}

// UntilSwapped repeats a swap while other swaps are in progress. It pauses in between, for up to pause:
// this is not needed for correctness, but where an attempt takes long, swaps would keep blocking each
// other.
func UntilSwapped(pause time.Duration, swap func() (old []byte, number uint64, err error)) (old []byte, number uint64, err error) {
	for {
		old, number, err = swap()
		if !errors.Is(err, source.ErrHeld) {
			return old, number, err
		}
		time.Sleep(rand.N(pause))
	}
}

// madeSwap is one swap, with what all processes together know of it.
type madeSwap struct {
	value, old string
	number     uint64 // 0: no process received it
	// end is when it had certainly taken effect: it had returned, or another process had seen its value.
	start, end time.Duration
	refused    bool
}

// CheckSwaps checks whether the events can be those of one register, whose swaps are numbered from 1
// without a gap. So the order in which they took effect is known, except for swaps whose process got no
// answer. These are somewhere between or after the others, however late, or were never made. It returns how
// many were confirmed; the error joins one error for every fault.
func CheckSwaps(events []SwapEvent) (confirmed int, faults error) {
	swaps, faults := readSwaps(events)
	order := slices.SortedFunc(maps.Values(swaps), func(a, b *madeSwap) int { return cmp.Compare(a.number, b.number) })
	returned := map[string]bool{}
	for _, s := range order {
		if s.number == 0 {
			continue
		}
		confirmed++
		if returned[s.old] {
			faults = errors.Join(faults, fmt.Errorf("%q was returned twice", s.old))
		}
		returned[s.old] = true
		faults = errors.Join(faults, infer(swaps, s))
	}
	return confirmed, errors.Join(faults, checkPeeks(swaps, events), checkNumbers(swaps), checkGaps(swaps))
}

func readSwaps(events []SwapEvent) (map[string]*madeSwap, error) {
	swaps := map[string]*madeSwap{}
	var faults error
	for _, e := range events {
		s := swaps[e.Value]
		if s == nil && e.Op != "begin" && e.Op != "peek" {
			faults = errors.Join(faults, fmt.Errorf("%q has %s, and was never begun", e.Value, e.Op))
			continue
		}
		switch e.Op {
		case "begin":
			if s != nil {
				faults = errors.Join(faults, fmt.Errorf("%q was used twice", e.Value))
			}
			swaps[e.Value] = &madeSwap{value: e.Value, start: e.Time, end: math.MaxInt64}
		case "end":
			s.old, s.number, s.end = e.Old, e.Number, e.Time
		case "fail":
			s.refused = true
		}
	}
	return swaps, faults
}

// infer concludes that the swap whose value s replaced took effect, right before s.
func infer(swaps map[string]*madeSwap, s *madeSwap) error {
	if s.old == "" {
		if s.number != 1 {
			return fmt.Errorf("%q is number %d, and replaced nothing", s.value, s.number)
		}
		return nil
	}
	before := swaps[s.old]
	switch {
	case before == nil:
		return fmt.Errorf("%q replaced %q, which nobody swapped in", s.value, s.old)
	case before.refused:
		return fmt.Errorf("%q replaced %q, whose process was told that it is not there", s.value, s.old)
	case before.number != 0 && before.number != s.number-1:
		return fmt.Errorf("%q, number %d, replaced %q, number %d", s.value, s.number, s.old, before.number)
	}
	before.number = s.number - 1
	return nil
}

// checkNumbers: numbers are unique, and a swap that returned before another one began has the smaller
// number.
func checkNumbers(swaps map[string]*madeSwap) error {
	var faults error
	order := slices.SortedFunc(maps.Values(swaps), func(a, b *madeSwap) int { return cmp.Compare(b.number, a.number) })
	earliest := &madeSwap{end: math.MaxInt64}
	for i, s := range order { // from the last one backwards
		if s.number == 0 {
			break
		}
		if i > 0 && order[i-1].number == s.number {
			faults = errors.Join(faults, fmt.Errorf("%q and %q both have number %d", s.value, order[i-1].value, s.number))
		}
		if earliest.end < s.start {
			faults = errors.Join(faults, fmt.Errorf("%q, number %d, was over before %q, number %d, began", earliest.value, earliest.number, s.value, s.number))
		}
		if s.end < earliest.end {
			earliest = s
		}
	}
	return faults
}

// checkGaps: a number that no process reports belongs to a swap whose process got no answer. That swap
// began before any swap with a larger number was over.
func checkGaps(swaps map[string]*madeSwap) error {
	known, starts := tellApart(swaps)
	latest := make([]time.Duration, len(known)) // by which all before it had begun
	for i, soonest := len(known)-1, time.Duration(math.MaxInt64); i >= 0; i-- {
		soonest = min(soonest, known[i].end)
		latest[i] = soonest
	}
	next := uint64(1)
	for i, s := range known {
		for ; next < s.number; next++ {
			if len(starts) == 0 || starts[0] > latest[i] {
				return fmt.Errorf("there is nobody who can have had number %d, before %q with number %d", next, s.value, s.number)
			}
			starts = starts[1:]
		}
		next = s.number + 1
	}
	return nil
}

// tellApart returns the swaps with a number in their order and, sorted, the start times of those that were
// never seen but may have taken effect.
func tellApart(swaps map[string]*madeSwap) (known []*madeSwap, starts []time.Duration) {
	for _, s := range swaps {
		switch {
		case s.number != 0:
			known = append(known, s)
		case !s.refused:
			starts = append(starts, s.start)
		}
	}
	slices.SortFunc(known, func(a, b *madeSwap) int { return cmp.Compare(a.number, b.number) })
	slices.Sort(starts)
	return known, starts
}

// checkPeeks: a peek may be late, but does not show a future value. The value that it shows has taken
// effect, with that number, whether or not its process got an answer.
func checkPeeks(swaps map[string]*madeSwap, events []SwapEvent) error {
	var faults error
	for _, e := range events {
		if e.Op != "peek" || e.Value == "" && e.Number == 0 {
			continue
		}
		s := swaps[e.Value]
		if s == nil || s.refused || s.start > e.Time || s.number != 0 && s.number != e.Number {
			faults = errors.Join(faults, fmt.Errorf("a peek showed %q with number %d: %+v", e.Value, e.Number, s))
			continue
		}
		s.number, s.end = e.Number, min(s.end, e.Time)
	}
	return faults
}

// ReadSwaps reads what a process wrote; the last line may be truncated if it was killed.
func ReadSwaps(r io.Reader) ([]SwapEvent, error) { return readLines[SwapEvent](r) }
