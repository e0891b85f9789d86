package show

import (
	"slices"
	"strings"
)

// Spark draws values as a line of blocks; the largest value is a full block.
func Spark(values []float64) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	if len(values) == 0 {
		return ""
	}
	most := slices.Max(values)
	var text strings.Builder
	for _, v := range values {
		level := 0
		if most > 0 {
			level = int(v / most * float64(len(blocks)-1))
		}
		text.WriteRune(blocks[max(level, 0)])
	}
	return text.String()
}
