package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The size of a plot in its own units. The page scales it to its width.
const (
	plotWidth, plotHeight = 400.0, 120.0
	maxBars, maxPoints    = 24, 200
	minBuckets            = 12
)

// histogram shows how long runs took, on a logarithmic scale.
type histogram struct {
	Bars           []bar
	From, Most     string
	Runs           string
	Median, Ninety string
	Slowest        []slowRow
}

type bar struct {
	X, Y, Width, Height string
	Text                string
}

type slowRow struct {
	Name, Host, Took string
	Ended            *time.Time
}

// histogramOf returns nil if no duration is known.
func histogramOf(t *Timing) *histogram {
	if t.runs() == 0 {
		return nil
	}
	low := slices.IndexFunc(t.took[:], func(n int) bool { return n > 0 })
	high := len(t.took)
	for t.took[high-1] == 0 {
		high--
	}
	if few := minBuckets - (high - low); few > 0 { // a single bar as wide as the plot would look like all durations
		low = max(low-few/2, 0)
		high = min(low+minBuckets, fineBuckets)
	}
	each := (high - low + maxBars - 1) / maxBars // buckets in a bar
	var counts []int
	for part := range slices.Chunk(t.took[low:high], each) {
		sum := 0
		for _, n := range part {
			sum += n
		}
		counts = append(counts, sum)
	}
	h := &histogram{
		From: durationText(bound(low)), Most: durationText(bound(low + each*len(counts))), Runs: count(t.runs()),
		Median: durationText(t.quantile(0.5)), Ninety: durationText(t.quantile(0.9)), //nolint:mnd // as they are named
	}
	most, width := slices.Max(counts), plotWidth/float64(len(counts))
	for i, n := range counts {
		if n == 0 {
			continue
		}
		tall := max(float64(n)/float64(most)*plotHeight, 1)
		h.Bars = append(h.Bars, bar{
			units(float64(i)*width + 1), units(plotHeight - tall), units(max(width-2, 1)), units(tall), //nolint:mnd // a unit of space at each side
			fmt.Sprintf("%s to %s: %s", durationText(bound(low+i*each)), durationText(bound(low+(i+1)*each)), countOf(n, "run")),
		})
	}
	for _, r := range t.slowest {
		h.Slowest = append(h.Slowest, slowRow{printable(r.name, maxLine), printable(r.host, maxLine), durationText(r.took.Seconds()), timeOrNil(r.end.UTC())})
	}
	return h
}

// curve is the number of jobs that have ended, over time.
type curve struct {
	Line, Ahead  string // points; Ahead leads from now to the estimated end
	Ended, Total string
	From, To     time.Time
	Left         string
}

// curveOf returns nil if there is nothing to draw.
func curveOf(t *Timeline) *curve {
	ends := slices.Sorted(slices.Values(t.timing.ends))
	if len(ends) == 0 {
		return nil
	}
	s := &t.Summary
	from, last := s.Start, time.UnixMilli(ends[len(ends)-1]).UTC()
	if first := time.UnixMilli(ends[0]).UTC(); from.IsZero() || first.Before(from) {
		from = first
	}
	now := last
	if s.Running+s.Claimed > 0 {
		now = later(last, t.Made)
	}
	to, total := now, len(ends)
	if s.Left > 0 {
		to, total = now.Add(time.Duration(s.Left*float64(time.Second))), total+s.Claimed+s.Pending+s.Retry
	}
	if !from.Before(to) {
		return nil
	}
	at := func(when time.Time, n int) string {
		return units(when.Sub(from).Seconds()/to.Sub(from).Seconds()*plotWidth) + "," + units(plotHeight-float64(n)/float64(total)*plotHeight)
	}
	points := []string{at(from, 0)}
	for i := range min(len(ends), maxPoints) {
		n := (i + 1) * len(ends) / min(len(ends), maxPoints)
		points = append(points, at(time.UnixMilli(ends[n-1]), n))
	}
	c := &curve{Line: strings.Join(append(points, at(now, len(ends))), " "), Ended: count(len(ends)), Total: count(total), From: from, To: to}
	if s.Left > 0 {
		c.Ahead, c.Left = at(now, len(ends))+" "+at(to, total), durationText(s.Left)
	}
	return c
}

// units formats a number of a plot's units, with one digit.
func units(n float64) string { return fmt.Sprintf("%g", math.Round(n*10)/10) }

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}
