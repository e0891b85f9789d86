package nfs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func cookPrices() []price {
	return []price{
		{what: "a swap of a cooking lock", most: [3]int{24, 24, 24}, call: costOfSwap},
		{what: "the same, and one of another host's before", most: [3]int{45, 45, 50}, call: costOfSwapAfterAnother},
		{what: "a look at a cooking lock", most: [3]int{4, 4, 3}, call: costOfPeek},
	}
}

func costOfSwap(t *testing.T, b bench) func() { return swapping(t, b, b.host) }

func swapping(t *testing.T, b bench, h host) func() {
	n, register := 0, cookRegister(t, b.place, h)
	return func() {
		n++
		_, _, err := register.Swap(context.Background(), fmt.Append(nil, h.name, n))
		require.NoError(t, err)
	}
}

func costOfSwapAfterAnother(t *testing.T, b bench) func() {
	other, own := swapping(t, b, b.other), swapping(t, b, b.host)
	return func() {
		other()
		own()
	}
}

func costOfPeek(t *testing.T, b bench) func() {
	swapping(t, b, b.other)()
	register := cookRegister(t, b.place, b.host)
	return func() {
		_, number, err := register.Peek(context.Background())
		require.NoError(t, err)
		require.EqualValues(t, 1, number)
	}
}
