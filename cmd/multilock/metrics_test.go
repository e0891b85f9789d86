//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	main "github.com/multilock/go/cmd/multilock"
)

// metrics returns the samples of "metrics", by their names with labels.
func (s *station) metrics(args ...string) map[string]string {
	s.t.Helper()
	return samples(s.must(append([]string{"metrics"}, args...)...))
}

func samples(text string) map[string]string {
	found := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if at := strings.LastIndex(line, " "); !strings.HasPrefix(line, "#") {
			found[line[:at]] = line[at+1:]
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	of := func(metric, name string) string { return metric + `{group=".locks",name="` + name + `"}` }
	require.Equal(t, "0", s.metrics()[`multilock_locks_held{group=".locks"}`], "nothing has happened yet")

	s.must("run", "-n", "good", "--every", "1h", "--", "true")
	require.Equal(t, 3, s.run("run", "-n", "bad", "--once", "--retries", "1", "--", "sh", "-c", "exit 3").code)
	s.must("run", "-n", "plain", "--", "true")
	s.ran("late", "1h", 10*time.Hour, 0)
	s.must("run", "-n", "late", "--every", "1h", "--", "true")
	s.ran("dead", "1h", 10*time.Hour, 0)
	defer s.hold("held").end()
	found := s.metrics()
	for sample, want := range map[string]string{
		of("multilock_runs_total", "good"): "1", of("multilock_runs_failed_total", "good"): "0", of("multilock_severity", "good"): "0", of("multilock_late", "good"): "0",
		of("multilock_runs_total", "bad"): "2", of("multilock_runs_failed_total", "bad"): "2", of("multilock_severity", "bad"): "2", of("multilock_late", "bad"): "0",
		of("multilock_runs_total", "plain"): "1", of("multilock_run_duration_seconds_count", "plain"): "1", of("multilock_waited_seconds_count", "plain"): "1",
		of("multilock_missed_ticks_total", "late"): "9", of("multilock_severity", "late"): "0",
		of("multilock_severity", "dead"): "2", of("multilock_late", "dead"): "1",
		`multilock_locks_held{group=".locks"}`: "1", `multilock_unreadable{group=".locks"}`: "0",
	} {
		require.Equal(t, want, found[sample], sample)
	}
	require.NotContains(t, found, of("multilock_severity", "plain"))
	require.Contains(t, found, of("multilock_due_timestamp_seconds", "dead"))
	require.Contains(t, found, of("multilock_last_success_timestamp_seconds", "good"))
	require.Contains(t, s.must("history", "late"), "(9 ticks missed before it)")
}

// The file is replaced atomically, or not changed.
func TestMetricsIntoAFile(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "good", "--", "true")
	dir := t.TempDir()
	file := filepath.Join(dir, "multilock.prom")
	require.Equal(t, ended{0, "", ""}, s.run("metrics", "--textfile", file))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "1", samples(string(before))[`multilock_runs_total{group=".locks",name="good"}`])

	got := s.run("metrics", "-d", "/nowhere/at/all", "--textfile", file)
	require.Equal(t, 125, got.code)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left there")

	require.Equal(t, 125, s.run("metrics", "--textfile", "/nowhere/at/all.prom").code)
	for _, args := range [][]string{{"--json"}, {"x"}, {"-n", "x"}, {"--textfile", ""}} {
		got := s.run(append([]string{"metrics"}, args...)...)
		require.Equal(t, 125, got.code, args)
		require.Empty(t, got.stdout)
	}
}

// docs/reference has all metrics, with their labels.
func TestMetricsReference(t *testing.T) {
	s := newStation(t)
	s.ran("late", "1h", 10*time.Hour, 0)
	s.must("run", "-n", "late", "--every", "1h", "--", "true")
	s.must("-g", "g", "batch", s.list("true"))
	text := s.must("metrics") + s.must("-g", "g", "metrics")
	labels := map[string]string{}
	for sample := range samples(text) {
		metric, rest, _ := strings.Cut(sample, "{")
		for _, suffix := range []string{"_sum", "_count"} {
			metric = strings.TrimSuffix(metric, suffix)
		}
		labels[metric] = strings.Join(regexp.MustCompile(`\b\w+="`).FindAllString(rest, -1), ", ")
	}
	var page strings.Builder
	page.WriteString("# Metrics\n\nOf `multilock metrics`. [Monitoring](../guides/monitoring.md) describes their use.\nBeside each metric are its type and its labels.\n\n")
	known := map[string]bool{}
	for _, found := range regexp.MustCompile(`# HELP (\w+) (.*)\n# TYPE \w+ (\w+)\n`).FindAllStringSubmatch(text, -1) {
		if metric := found[1]; !known[metric] {
			known[metric] = true
			page.WriteString(main.Folded(fmt.Sprintf("- `%s` (%s; %s): %s", metric, found[3], strings.ReplaceAll(labels[metric], `="`, ""), found[2])))
		}
	}
	require.Greater(t, len(known), 14)
	main.RequireReference(t, "metrics.md", page.String())
}

// monitoring is the directory with the files for monitoring systems.
const monitoring = "../../docs/monitoring"

// The dashboard and the alerts use only metrics and labels that are printed.
func TestMonitoringKnowsTheMetrics(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.ran("late", "1h", 10*time.Hour, 0)
	s.must("run", "-n", "late", "--every", "1h", "--", "true")
	printed := map[string]bool{}
	for sample := range s.metrics() {
		name, _, _ := strings.Cut(sample, "{")
		printed[name] = true
	}
	for _, file := range []string{"grafana.json", "alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(monitoring, file))
		require.NoError(t, err)
		named := regexp.MustCompile(`multilock_\w+`).FindAllString(string(text), -1)
		require.NotEmpty(t, named)
		for _, name := range named {
			require.Contains(t, printed, name, file)
		}
	}
}

// Each panel of the dashboard has a query, and a position of its own.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(monitoring, "grafana.json"))
	require.NoError(t, err)
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	taken := map[[2]int]string{}
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			require.Contains(t, target.Expr, "multilock_", panel.Title)
			require.Contains(t, target.Expr, `group=~"$group"`, panel.Title)
		}
		at := panel.GridPos
		require.LessOrEqual(t, at.X+at.W, 24, panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}
