package lockgroup_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

const day = 24 * time.Hour

// cluster is a set of hosts whose cron fires the same line, each by its own clock. No job runs:
// the plan's decisions are recorded directly in the ledger.
type cluster struct {
	t       *testing.T
	rng     *rand.Rand
	plan    lockgroup.Plan
	span    time.Duration
	offsets []time.Duration // of the hosts' clocks from the source's
	down    []int           // the firings for which a host is down, after a crash
	last    *multilock.Result
	starts  []time.Time // of the runs that completed
	story   []firing
}

// firing is a plan's decision on a host whose line fired.
type firing struct {
	host int
	at   time.Time
	said lockgroup.Decision
}

// newCluster makes 2 to 5 hosts whose clocks differ by up to two fifths of a span, from each other and
// from the source's.
func newCluster(t *testing.T, rng *rand.Rand, every string, span time.Duration) *cluster {
	c := &cluster{t: t, rng: rng, plan: lockgroup.Plan{Every: mustEvery(t, every)}, span: span}
	most := span / 5 * 2
	shift := time.Duration(rng.Int64N(int64(most) + 1))
	for range 2 + rng.IntN(4) {
		c.offsets = append(c.offsets, time.Duration(rng.Int64N(int64(most)+1))-shift)
	}
	c.offsets[0], c.offsets[1] = -shift, most-shift // the maximum difference
	c.down = make([]int, len(c.offsets))
	return c
}

// fire is one period of the line: every host that is up fires it, at most a second early or late. It
// requires that the job runs once, on the first host that does not crash.
func (c *cluster) fire(line time.Time) {
	var firings []firing
	for host, offset := range c.offsets {
		jitter := time.Duration(c.rng.Int64N(int64(2*time.Second))) - time.Second
		firings = append(firings, firing{host: host, at: line.Add(offset + jitter)})
	}
	sort.Slice(firings, func(i, j int) bool { return firings[i].at.Before(firings[j].at) })
	ran, lived := 0, false
	for _, f := range firings {
		if c.down[f.host] > 0 {
			c.down[f.host]--
			continue
		}
		d := c.plan.Next(f.at, c.last)
		c.story = append(c.story, firing{f.host, f.at, d})
		require.False(c.t, d.InFuture, "%s", c)
		if c.offsets[f.host].Abs()+time.Second <= c.span/5*2 {
			require.True(c.t, d.Better.IsZero(), "%s", c)
		}
		if d.Step == lockgroup.StepRun && c.rng.IntN(4) == 0 { // it crashes during the run
			c.down[f.host] = c.rng.IntN(4)
			continue
		}
		lived = true
		if d.Step == lockgroup.StepRun {
			ran++
			c.commit(f.at, d)
		}
	}
	if lived {
		require.Equal(c.t, 1, ran, "%s", c)
	}
}

func (c *cluster) commit(start time.Time, d lockgroup.Decision) {
	if n := len(c.starts); n > 0 {
		require.GreaterOrEqual(c.t, start.Sub(c.starts[n-1]), c.span/2, "%s", c)
	}
	c.starts = append(c.starts, start)
	result := c.plan.Complete(multilock.Result{}, d)
	c.last = &result
}

func (c *cluster) String() string {
	text := fmt.Sprintf("every %s, offsets %v\n", c.plan.Every, c.offsets)
	for _, f := range c.story[max(0, len(c.story)-15):] {
		text += fmt.Sprintf("%s host %d: %+v\n", f.at.UTC().Format(time.RFC3339Nano), f.host, f.said)
	}
	return text
}

// seeded runs a property with many seeds, and reports the seed of a failure.
func seeded(t *testing.T, n int, property func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 9))
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { property(t, rng) }) {
			return
		}
	}
}

// Wherever in its span a line fires, and whatever the hosts' clocks show: exactly one run per period while
// a host is up, and no two starts within half a span.
// Rule: ticks
func TestOneRunPerPeriod(t *testing.T) {
	spans := []time.Duration{time.Minute, 5 * time.Minute, 7 * time.Minute, time.Hour, 150 * time.Minute, day / 2, day}
	seeded(t, 200, func(t *testing.T, rng *rand.Rand) {
		span := spans[rng.IntN(len(spans))]
		phase := time.Duration(rng.Int64N(int64(span))).Truncate(time.Second)
		every := span.String()
		if rng.IntN(2) == 0 {
			every += "@" + phase.String()
		}
		c := newCluster(t, rng, every, span)
		line := time.Unix(0, 0).Add(span*time.Duration(rng.Int64N(1000)) + phase)
		for k := range 60 {
			c.fire(line.Add(span * time.Duration(k)))
		}
	})
}

// A line that fires by a wall clock, across changes of daylight saving time: daily, and hourly where clocks
// change by half an hour.
// Rule: ticks
func TestOneRunPerPeriodByAWallClock(t *testing.T) {
	changes := map[string][]string{
		"Europe/Berlin":       {"2026-03-29", "2026-10-25"},
		"America/New_York":    {"2026-03-08", "2026-11-01"},
		"Australia/Lord_Howe": {"2026-04-05", "2026-10-04"},
	}
	for name, days := range changes {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, text := range days {
			change, err := time.ParseInLocation(time.DateOnly, text, zone)
			require.NoError(t, err)
			for _, phased := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, daily, phase %t", text, phased), func(t *testing.T) {
					seeded(t, 30, func(t *testing.T, rng *rand.Rand) { dailyThrough(t, rng, change, phased) })
				})
			}
			t.Run(text+", hourly", func(t *testing.T) {
				seeded(t, 20, func(t *testing.T, rng *rand.Rand) { hourlyThrough(t, rng, change) })
			})
		}
	}
}

// dailyThrough fires a daily line at any minute of the day, often at one that the change of the clocks
// skips or repeats.
func dailyThrough(t *testing.T, rng *rand.Rand, change time.Time, phased bool) {
	minute := rng.IntN(24 * 60)
	if rng.IntN(2) == 0 {
		minute = 60 + rng.IntN(150)
	}
	every := "1d"
	if phased {
		every = fmt.Sprintf("1d@%02d:%02d[%s]", minute/60, minute%60, change.Location())
	}
	c := newCluster(t, rng, every, day)
	for k := -10; k < 10; k++ {
		c.fire(cronAt(change.AddDate(0, 0, k), minute))
	}
}

// cronAt returns when cron fires for a minute of a day: the first time that it occurs, or when the
// clocks have skipped it. It checks every minute, without the zone's rules.
func cronAt(day time.Time, minute int) time.Time {
	for moment := day; ; moment = moment.Add(time.Minute) {
		hour, min, _ := moment.Clock()
		if hour*60+min >= minute || moment.Day() != day.Day() {
			return moment
		}
	}
}

// hourlyThrough fires at a minute of every hour of the wall clock.
func hourlyThrough(t *testing.T, rng *rand.Rand, change time.Time) {
	minute := rng.IntN(60)
	c := newCluster(t, rng, "1h", time.Hour)
	var before time.Time
	for moment := change.Add(-day); moment.Before(change.Add(2 * day)); moment = moment.Add(time.Minute) {
		if moment.Minute() == minute && moment.Sub(before) > time.Hour/2 { // not again in repeated minutes
			c.fire(moment)
			before = moment
		}
	}
}

// A line that fires more often than once per span gets one run per span, on average and at every moment.
// Rule: ticks
func TestFiringOftenRunsOncePerSpan(t *testing.T) {
	for _, every := range []string{"1h", "1h@20m"} {
		seeded(t, 50, func(t *testing.T, rng *rand.Rand) {
			plan := lockgroup.Plan{Every: mustEvery(t, every)}
			now := at(t, "2026-01-02T12:00:00Z").Add(time.Duration(rng.Int64N(int64(time.Hour))))
			end := now.Add(100 * time.Hour)
			var starts []time.Time
			var last *multilock.Result
			for ; now.Before(end); now = now.Add(time.Duration(rng.Int64N(int64(10 * time.Minute)))) {
				if d := plan.Next(now, last); d.Step == lockgroup.StepRun {
					starts = append(starts, now)
					result := plan.Complete(multilock.Result{}, d)
					last = &result
				}
			}
			require.InDelta(t, 100, len(starts), 1)
			for i, start := range starts[1:] {
				require.GreaterOrEqual(t, start.Sub(starts[i]), time.Hour/2)
			}
		})
	}
}

// After any runs by hand of a line without a phase, at most one of its firings finds that the job has
// already run.
// Rule: ticks
func TestALineIsAtAnEdgeOnce(t *testing.T) {
	seeded(t, 100, func(t *testing.T, rng *rand.Rand) {
		c := newCluster(t, rng, "1d", day)
		line := at(t, "2026-01-02T00:00:00Z")
		byHand := line.Add(-time.Duration(rng.Int64N(int64(day))))
		if rng.IntN(2) == 0 {
			byHand = line.Add(-day/2 + time.Duration(rng.Int64N(int64(4*time.Second))) - 2*time.Second)
		}
		c.commit(byHand, c.plan.Next(byHand, nil))
		skipped := 0
		for k := range 30 {
			now := line.Add(time.Duration(k)*day + time.Duration(rng.Int64N(int64(2*time.Second))) - time.Second)
			d := c.plan.Next(now, c.last)
			if d.Step != lockgroup.StepRun {
				skipped++
				continue
			}
			c.commit(now, d)
		}
		require.LessOrEqual(t, skipped, 1)
	})
}

// The ticks of wall clocks, when a change skips a time or repeats it.
// Rule: ticks
func TestTicksByWallClocks(t *testing.T) {
	for _, c := range []struct{ every, now, tick string }{
		{"1d@02:30[Europe/Berlin]", "2026-03-28T12:00:00Z", "2026-03-28T02:30:00+01:00"},
		{"1d@02:30[Europe/Berlin]", "2026-03-29T12:00:00Z", "2026-03-29T03:00:00+02:00"}, // skipped
		{"1d@02:30[Europe/Berlin]", "2026-03-30T12:00:00Z", "2026-03-30T02:30:00+02:00"},
		{"1d@02:30[Europe/Berlin]", "2026-10-25T10:00:00Z", "2026-10-25T02:30:00+02:00"}, // the first of two
		{"1d@03:00[Europe/Berlin]", "2026-10-25T10:00:00Z", "2026-10-25T03:00:00+01:00"},
		{"1d@00:00[Europe/Berlin]", "2026-03-29T10:29:59Z", "2026-03-29T00:00:00+01:00"},
		{"1d@00:00[Europe/Berlin]", "2026-03-29T10:30:00Z", "2026-03-30T00:00:00+02:00"},
		{"1d@02:15[Australia/Lord_Howe]", "2026-10-03T20:00:00Z", "2026-10-04T02:30:00+11:00"}, // half an hour is skipped
		{"1d@01:45[Australia/Lord_Howe]", "2026-04-04T20:00:00Z", "2026-04-05T01:45:00+11:00"},
		{"1d@07:30", "2026-03-29T12:00:00+02:00", "2026-03-29T07:30:00Z"},
		{"2d@07:30[Europe/Berlin]", "2026-03-31T07:00:00+02:00", "2026-03-30T07:30:00+02:00"},
		{"2d@07:30[Europe/Berlin]", "2026-03-31T08:00:00+02:00", "2026-04-01T07:30:00+02:00"},
		{"2d@07:30[Europe/Berlin]", "1969-12-29T05:00:00Z", "1969-12-28T07:30:00+01:00"},
		{"1d@00:30[America/Sao_Paulo]", "2018-11-04T10:00:00Z", "2018-11-04T01:00:00-02:00"}, // midnight is skipped
		{"1d@23:30[Atlantic/Azores]", "2026-10-25T00:00:00Z", "2026-10-24T23:30:00Z"},
		{"1h@30m", "2026-01-02T12:59:59.9Z", "2026-01-02T12:30:00Z"},
		{"1h@30m", "2026-01-02T13:00:00Z", "2026-01-02T13:30:00Z"},
		{"7m@0s", "1970-01-01T00:07:00Z", "1970-01-01T00:07:00Z"},
		{"7m@1m", "1970-01-01T00:04:00Z", "1970-01-01T00:01:00Z"},
		{"1h@0m", "1969-12-31T23:31:00Z", "1970-01-01T00:00:00Z"},
		{"1h@0m", "2500-01-01T00:31:00Z", "2500-01-01T01:00:00Z"},
		{"1h@0m", "0001-01-01T00:31:00Z", "0001-01-01T01:00:00Z"},
	} {
		got := lockgroup.Plan{Every: mustEvery(t, c.every)}.Next(at(t, c.now), nil).Tick
		require.Equal(t, at(t, c.tick).UTC(), got, "%s at %s", c.every, c.now)
	}
}

// The suggested phase, if a line fires far from its tick.
// Rule: none (messages)
func TestBetterEvery(t *testing.T) {
	for _, c := range []struct{ every, now, better string }{
		{"1h@0m", "2026-01-02T12:30:02Z", "1h@30m"},
		{"1h@0m", "2026-01-02T12:24:00Z", ""},
		{"1h@0m", "2026-01-02T12:24:01Z", "1h@24m"},
		{"1h@30m", "2026-01-02T12:59:58Z", "1h@0s"},
		{"1m@0s", "2026-01-02T12:59:29.8Z", "1m@30s"},
		{"1d@00:00", "2026-01-02T12:00:01Z", "1d@12:00"},
		{"1d@01:30[Europe/Berlin]", "2026-03-29T13:30:00+02:00", "1d@13:30[Europe/Berlin]"},
		{"7d@102h", "2026-01-02T06:00:00Z", "7d@30h"},
		{"7d@06:00[Europe/Berlin]", "2026-01-05T06:00:00+01:00", "7d"},
		{"1h", "2026-01-02T12:30:02Z", ""},
	} {
		plan := lockgroup.Plan{Every: mustEvery(t, c.every)}
		better := plan.Next(at(t, c.now), nil).Better
		require.Equal(t, c.better, better.String(), "%s at %s", c.every, c.now)
		again := lockgroup.Plan{Every: better}.Next(at(t, c.now), nil)
		require.True(t, again.Better.IsZero(), "%s at %s: and then %s", c.every, c.now, again.Better)
	}
}
