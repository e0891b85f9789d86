package lockgroup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

func TestParseEvery(t *testing.T) {
	for text, short := range map[string]string{
		"1h":                       "1h",
		"90":                       "1m30s",
		"1h@30m":                   "1h@30m",
		"1h@0":                     "",
		"1h@0s":                    "1h@0s",
		"1d@07:30":                 "1d@07:30",
		"1d@7:30":                  "1d@07:30",
		"24h@7h30m":                "1d@07:30",
		"1d@07:30:15":              "1d@07:30:15",
		"2d@07:30[Europe/Berlin]":  "2d@07:30[Europe/Berlin]",
		"1d@07:30[UTC]":            "1d@07:30[UTC]",
		"7d@102h":                  "7d@102h",
		"1.5d@1d":                  "36h@1d",
		"1d@00:00[Asia/Kathmandu]": "1d@00:00[Asia/Kathmandu]",
	} {
		if short == "" {
			_, err := lockgroup.ParseEvery(text)
			require.Error(t, err, text)
			continue
		}
		every, err := lockgroup.ParseEvery(text)
		require.NoError(t, err, text)
		require.Equal(t, short, every.String(), text)
		require.False(t, every.IsZero(), text)
	}
}

func TestParseEveryRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                         `"" is no duration`,
		"soon":                     `"soon" is no duration`,
		"-1h":                      "a duration cannot be negative",
		"0":                        "the span 0s is shorter than 1s",
		"10ms":                     "the span 10ms is shorter than 1s",
		"200000d":                  "no duration, or too long a one",
		"2000000h":                 "is longer than a hundred years",
		"1h@":                      `"" is no duration`,
		"1h@soon":                  `"soon" is no duration`,
		"1h@30":                    "the phase 30 has no unit; write 30m or 30s",
		"1h@1h":                    "the phase 1h is not shorter than the span 1h",
		"1d@25h":                   "the phase 25h is not shorter than the span 1d",
		"1h@-1m":                   "a duration cannot be negative",
		"1h@30m@1m":                `"30m@1m" is no duration`,
		"1h@00:30":                 "the time of day 00:30 needs a span of whole days",
		"36h@07:30[Europe/Berlin]": "the time of day 07:30 needs a span of whole days",
		"1d@24:00":                 `"24:00" is no time of day; write 07:30`,
		"1d@7:5x":                  `"7:5x" is no time of day; write 07:30`,
		"1d@07:30Z":                `"07:30Z" is no time of day; write 07:30`,
		"1d@7h[Europe/Berlin]":     "a time zone needs a time of day",
		"1d@07:30[Mars/Olympus]":   `this host does not know the time zone "Mars/Olympus": correct the name, or install the package tzdata here`,
		"1d@07:30[../../etc]":      "this host does not know the time zone",
		"1d@07:30[Local]":          "does not end with the name of a time zone",
		"1d@07:30[]":               "does not end with the name of a time zone",
		"1d@07:30[Europe/Berlin":   "does not end with the name of a time zone",
		"1d@07:30[Europe/Berlin]x": "does not end with the name of a time zone",
	} {
		_, err := lockgroup.ParseEvery(text)
		require.ErrorIs(t, err, multilock.ErrInvalid, text)
		require.ErrorContains(t, err, why, text)
	}
}

func TestEverySpan(t *testing.T) {
	require.True(t, lockgroup.EverySpan(0).IsZero())
	require.True(t, lockgroup.Every{}.IsZero())
	require.Empty(t, lockgroup.Every{}.String())
	require.Equal(t, mustEvery(t, "90m"), lockgroup.EverySpan(90*time.Minute))
}

// What is parsed is written so that it is parsed to the same, and has its ticks nearby.
func FuzzParseEvery(f *testing.F) {
	for _, text := range []string{
		"1h", "1h@30m", "1d@07:30", "1d@07:30[Europe/Berlin]", "3d@02:30:15[Australia/Lord_Howe]", "1.5s@1ms", "90", "7d@102h", "1d@12:00[Asia/Kathmandu]", "36500d@0s", "7d",
	} {
		f.Add(text, int64(1774755000))
		f.Add(text, int64(-62135597052)) // before the year 1
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		every, err := lockgroup.ParseEvery(text)
		if err != nil {
			require.ErrorIs(t, err, multilock.ErrInvalid)
			return
		}
		again, err := lockgroup.ParseEvery(every.String())
		require.NoError(t, err)
		require.Equal(t, every.String(), again.String())
		now := time.Unix(seconds%1e11, 0)
		d := lockgroup.Plan{Every: every}.Next(now, nil)
		require.Equal(t, d, lockgroup.Plan{Every: again}.Next(now, nil))
		length, _, _ := strings.Cut(every.String(), "@")
		apart, err := span.Parse(length)
		require.NoError(t, err)
		require.LessOrEqual(t, d.Tick.Sub(now).Abs(), apart/2+2*day)
	})
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return moment
}

func mustEvery(t *testing.T, text string) lockgroup.Every {
	t.Helper()
	every, err := lockgroup.ParseEvery(text)
	require.NoError(t, err)
	return every
}
