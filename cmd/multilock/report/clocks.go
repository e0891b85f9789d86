package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/multilock/go/multilock/source"
)

// clockGaps finds what the history proves about the hosts' clocks. Fencing numbers
// tell the true order in which a lock was held. So if a later holder wrote an
// earlier time than one that gave the lock back before, its clock was behind by at
// least that much. No correction can be had from this: it is a lower limit, and for
// few hosts.
func clockGaps(all []*tenure) []ClockGap {
	fenced := map[string][]*tenure{}
	for _, t := range all {
		if t.acquired != nil && t.acquired.Fence > 0 {
			fenced[t.name] = append(fenced[t.name], t)
		}
	}
	largest := map[[2]string]ClockGap{}
	for _, name := range slices.Sorted(maps.Keys(fenced)) {
		order := fenced[name]
		slices.SortFunc(order, func(a, b *tenure) int { return cmp.Compare(a.acquired.Fence, b.acquired.Fence) })
		for i := 1; i < len(order); i++ {
			gap, ok := gapBetween(order[i-1], order[i])
			if pair := [2]string{gap.Ahead, gap.Behind}; ok && gap.AtLeast > largest[pair].AtLeast {
				largest[pair] = gap
			}
		}
	}
	return slices.SortedFunc(maps.Values(largest), func(a, b ClockGap) int {
		return cmp.Or(cmp.Compare(b.AtLeast, a.AtLeast), cmp.Compare(a.Ahead, b.Ahead), cmp.Compare(a.Behind, b.Behind))
	})
}

func gapBetween(earlier, after *tenure) (ClockGap, bool) {
	ahead, behind := earlier.acquired.By.Host, after.acquired.By.Host
	gap := earlier.whileHeld().Sub(after.acquired.Time)
	if ahead == behind || gap <= 0 {
		return ClockGap{}, false
	}
	return ClockGap{Ahead: ahead, Behind: behind, AtLeast: gap.Seconds(), Name: earlier.name}, true
}

// whileHeld is the last time that was written while the lock was certainly held;
// zero if it was not given back in order. The release itself is written down after
// it, when the lock may be another's already.
func (t *tenure) whileHeld() time.Time {
	if t.ended == nil || t.ended.What != source.EventReleased || t.broke != nil {
		return time.Time{}
	}
	last := t.acquired.Time
	for _, e := range t.committed {
		last = later(last, e.Time)
	}
	return last
}
