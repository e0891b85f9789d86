//go:build unix

package command

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/source"
)

// Prometheus can parse the metrics with any names, reads the same names, and no series twice. Prometheus and
// node_exporter reject a text with duplicate series as a whole.
func FuzzMetrics(f *testing.F) {
	for _, names := range [][3]string{
		{".locks", "a", "b"}, {"a \"b\"\\", "new\nline", "cr\r"}, {"\xff", "a\xff", "a\xfe"}, {"g", "a\xff\xff", "a\ufffd"}, {"g", "x#slot-1", "x"},
		{"g", "#jobs-1-9", "#jobs"}, {"g", "#others", "x}"}, {"", "", "\\n"}, {"g", "\u2028", "\x00"}, {"g", "a\\xff", "a\xff"},
	} {
		f.Add(names[0], names[1], names[2], int64(1500))
	}
	f.Fuzz(func(t *testing.T, group, one, other string, held int64) {
		m := meter{src: &place.Source{Place: place.Place{Group: group}}, counts: newCounts(group), locks: true}
		names := []string{one}
		if other != one {
			names = append(names, other)
		}
		for _, name := range names {
			m.counts.add(source.Event{What: source.EventReleased, Name: name, Token: "t", Held: time.Duration(held)})
			if _, chunk := joblist.ParseChunkName(name); !chunk { // as the watcher does
				m.jobs = append(m.jobs, show.OverdueJob{Name: name})
			}
		}
		text := string(show.Exposition(m.families(time.UnixMilli(held % (1 << 50)))))
		runs, alarms := 0.0, map[string]bool{}
		for _, s := range readMetrics(t, text) {
			require.Equal(t, strings.ToValidUTF8(group, "\ufffd"), s.labels["group"])
			require.False(t, math.IsNaN(s.value) || math.IsInf(s.value, 0))
			switch s.name {
			case "multilock_runs_total":
				runs += s.value
			case "multilock_severity":
				alarms[s.labels["name"]] = true
			}
		}
		require.InDelta(t, len(names), runs, 0, "each run is counted")
		for _, name := range names {
			label := strings.ToValidUTF8(jobLabel(name), "\ufffd")
			require.True(t, label == otherNames || label == chunkNames || alarms[label], "%q is in %q", label, text)
		}
	})
}

// series is a line of metrics.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

// readMetrics parses the Prometheus text format by its specification, independently of the code that writes
// it, and requires unique series.
func readMetrics(t *testing.T, text string) (all []series) {
	t.Helper()
	line := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?s:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$`)
	label := regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"`)
	remark := regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (?:counter|gauge|summary$|[A-Z1].*\.$)`)
	seen, family := map[string]bool{}, ""
	require.True(t, strings.HasSuffix(text, "\n"))
	for each := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(each, "#") {
			found := remark.FindStringSubmatch(each)
			require.NotNil(t, found, "%q", each)
			family = found[2]
			require.False(t, seen[found[1]+" "+family], "%q", each)
			seen[found[1]+" "+family] = true
			continue
		}
		found := line.FindStringSubmatch(each)
		require.NotNil(t, found, "%q", each)
		require.Contains(t, []string{family, family + "_sum", family + "_count"}, found[1])
		key := found[1] + "{" + found[2] + "}"
		require.False(t, seen[key], "twice: %q", each)
		seen[key] = true
		s := series{name: found[1], labels: map[string]string{}}
		for _, pair := range label.FindAllStringSubmatch(found[2], -1) {
			s.labels[pair[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(pair[2])
		}
		value, err := strconv.ParseFloat(found[3], 64)
		require.NoError(t, err)
		s.value = value
		all = append(all, s)
	}
	return all
}
