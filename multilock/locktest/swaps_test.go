package locktest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
)

// The checker finds what no register does.
func TestCheckSwaps(t *testing.T) {
	begin := func(value string, at time.Duration) locktest.SwapEvent {
		return locktest.SwapEvent{Op: "begin", Value: value, Time: at}
	}
	end := func(value, old string, n uint64, at time.Duration) locktest.SwapEvent {
		return locktest.SwapEvent{Op: "end", Value: value, Old: old, Number: n, Time: at}
	}
	good := []locktest.SwapEvent{begin("a", 1), end("a", "", 1, 2), begin("b", 3), begin("c", 3), end("c", "b", 3, 9)}
	confirmed, err := locktest.CheckSwaps(good)
	require.NoError(t, err)
	require.Equal(t, 2, confirmed)
	open := append(slices.Clone(good), begin("d", 3), begin("e", 12), end("e", "b2", 6, 13), begin("b2", 3), begin("never", 3))
	_, err = locktest.CheckSwaps(open)
	require.NoError(t, err, "whoever was not told may have taken effect, at any time after its beginning")

	for name, more := range map[string][]locktest.SwapEvent{
		"returned twice":           {begin("d", 10), end("d", "b", 4, 11)},
		"was never begun":          {end("x", "", 4, 11)},
		"used twice":               {begin("a", 10)},
		"nobody swapped in":        {begin("d", 10), end("d", "x", 4, 11)},
		"replaced nothing":         {begin("d", 10), end("d", "", 4, 11)},
		"told that it is not":      {begin("d", 10), {Op: "fail", Value: "d", Time: 11}, begin("e", 12), end("e", "d", 5, 13)},
		"number 5, replaced":       {begin("d", 10), end("d", "c", 5, 11)},
		"both have number 3":       {begin("d", 3), end("d", "a", 3, 11)},
		"was over before":          {begin("d", 10), begin("e", 12), end("e", "c", 4, 13), end("d", "e", 5, 11)},
		"a peek showed \"x\"":      {{Op: "peek", Value: "x", Number: 7, Time: 11}},
		"a peek showed \"b\"":      {{Op: "peek", Value: "b", Number: 2, Time: 2}},
		"a peek showed \"c\" with": {{Op: "peek", Value: "c", Number: 4, Time: 11}},
		"a peek showed \"\"":       {{Op: "peek", Number: 2, Time: 11}},
		// Of those whose process was not told, "d" has a number as soon as somebody sees it.
		"both have number 4":         {begin("d", 10), {Op: "peek", Value: "d", Number: 4, Time: 11}, begin("e", 10), end("e", "c", 4, 13)},
		"showed \"d\" with number 5": {begin("d", 10), {Op: "peek", Value: "d", Number: 4, Time: 11}, {Op: "peek", Value: "d", Number: 5, Time: 11}},
		"\"d\", number 5, was over":  {begin("d", 10), {Op: "peek", Value: "d", Number: 5, Time: 11}, begin("e", 12), end("e", "c", 4, 13)},
		// A number that was given to nobody, or to one who came too late for it.
		"had number 4, before \"d\"": {begin("e", 10), end("e", "d", 6, 13), begin("d", 10)},
		"had number 4, before \"f\"": {begin("f", 10), {Op: "peek", Value: "f", Number: 5, Time: 11}, begin("late", 12)},
	} {
		_, err := locktest.CheckSwaps(append(append([]locktest.SwapEvent(nil), good...), more...))
		require.ErrorContains(t, err, name)
	}
}
