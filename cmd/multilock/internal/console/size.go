package console

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a flag's value: a number of bytes, 0 if not given.
type Size uint64

const sizeUnits = "TGMK"

// String formats with at most one decimal.
func (s Size) String() string {
	for i, unit := range sizeUnits {
		if size := uint64(1) << (10 * (len(sizeUnits) - i)); uint64(s) >= size {
			return strconv.FormatFloat(math.Trunc(10*float64(s)/float64(size))/10, 'f', -1, 64) + string(unit)
		}
	}
	return strconv.FormatUint(uint64(s), 10)
}

// Set parses 500M, 1.5G, 8GiB or a number of bytes.
func (s *Size) Set(text string) error {
	errSize := errors.New("write a size such as 500M or 8G")
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I")
	unit := 1.0
	if last := len(number) - 1; last >= 0 {
		if at := strings.IndexByte(sizeUnits, number[last]); at >= 0 {
			number, unit = number[:last], math.Pow(1024, float64(len(sizeUnits)-at))
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if n *= unit; err != nil || !(n >= 1 && n < math.MaxInt64) {
		return errSize
	}
	*s = Size(n)
	return nil
}
