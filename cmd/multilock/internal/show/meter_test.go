package show

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/estimate"
	"github.com/multilock/go/lockgroup/batch"
)

// On a narrow terminal the bar shrinks first. Then details are dropped, the last one first. Only whole words
// remain, and the numbers of jobs, failures, rate and remaining time remain longest.
func TestLineOfABatch(t *testing.T) {
	a := amountOf(batch.Progress{
		Total: 1200, Done: 512, Failed: 3, Before: 200, Running: 16, Elsewhere: 64, TakenOver: 1,
	}, estimate.Estimate{Done: 315 * time.Minute, Left: 685 * time.Minute}, 10*time.Minute)
	full := "(515/1200) 3 failed, 0.525 jobs/s, about 22m00s left, 16 running here, 64 held elsewhere, 1 taken over, 200 ended earlier"
	for columns, want := range map[int]string{
		200: "[##########..............] " + full,
		137: "[#####.......] " + full,
		127: full,
		119: strings.TrimSuffix(full, ", 200 ended earlier"),
		100: "(515/1200) 3 failed, 0.525 jobs/s, about 22m00s left, 16 running here, 64 held elsewhere",
		60:  "(515/1200) 3 failed, 0.525 jobs/s, about 22m00s left",
		40:  "(515/1200) 3 failed, 0.525 jobs/s",
		22:  "(515/1200) 3 failed",
		15:  "(515/1200)",
		8:   "(515/1…",
	} {
		require.Equal(t, want, a.line(0, columns), columns)
	}
	require.Equal(t, "(1/2) 1 held (a-lon…", amount{done: 1, total: 2, core: []string{"1 held (a-long-name by node7)"}}.line(0, 21))
	require.Equal(t, "/ 2 held", amount{core: []string{"2 held"}}.line(1, 80), "a spinner if the total is unknown")
}

func TestPaceForPeople(t *testing.T) {
	for _, c := range []struct {
		rate float64
		left time.Duration
		want string
	}{
		{0, 0, ""},
		{12.345, 3456 * time.Millisecond, "12.3 jobs/s, about 3.5s left"},
		{0.05, 99*time.Second + 300*time.Millisecond, "3 jobs/min, about 1m39s left"},
		{0.0005, 50 * time.Hour, "1.8 jobs/h, about 2d02h left"},
	} {
		require.Equal(t, c.want, joined("", pace(c.rate, c.left)))
	}
}
