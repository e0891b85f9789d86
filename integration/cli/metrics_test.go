package cli_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
)

// Prometheus's own parser reads the output of "metrics", whatever the names of jobs are. promtool, if
// it is installed, has no complaints.
func TestPrometheusReadsTheMetrics(t *testing.T) {
	t.Parallel()
	s := newStation(t, "MULTILOCK_DIR="+t.TempDir())
	names := []string{"nightly", `a "b" \c`, "zwölf", "new\nline", "x{y=1}"}
	for _, name := range names {
		require.Zero(t, s.run("run", "-n", name, "--every", "1h", "--", "true").code)
	}
	require.Equal(t, 1, s.run("run", "-n", "bad", "--once", "--", "false").code)
	got := s.run("metrics")
	require.Zero(t, got.code, got.stderr)

	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(strings.NewReader(got.stdout))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(families), 14)
	found := map[string]float64{}
	for _, metric := range families["multilock_runs_total"].GetMetric() {
		found[label(metric, "name")] = metric.GetCounter().GetValue()
	}
	require.Len(t, found, len(names)+1)
	for _, name := range names {
		require.InDelta(t, 1, found[name], 0, name)
	}
	require.Equal(t, dto.MetricType_SUMMARY, families["multilock_run_duration_seconds"].GetType())
	require.EqualValues(t, 1, families["multilock_run_duration_seconds"].GetMetric()[0].GetSummary().GetSampleCount())

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool, from Debian's prometheus")
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = bytes.NewReader([]byte(got.stdout))
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	rules, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "../../docs/monitoring/alerts.yml").CombinedOutput()
	require.NoError(t, err, string(rules))
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
