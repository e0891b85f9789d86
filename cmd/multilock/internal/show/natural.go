package show

import (
	"cmp"
	"strings"
)

// Natural compares names in natural order: job2 before job10.
func Natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		if order := byNumber(x[:m], y[:n]); order != 0 {
			return order
		}
		x, y = x[m:], y[n:]
	}
	// One is a prefix of the other, or they differ in leading zeros.
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// digits counts the leading digits.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// byNumber compares digits by value, at any length.
func byNumber(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
