package report_test

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func bars(page string) (texts []string) {
	for _, found := range regexp.MustCompile(`<rect class="bar-of"[^>]*><title>([^<]*)</title>`).FindAllStringSubmatch(page, -1) {
		texts = append(texts, found[1])
	}
	return texts
}

func captions(page string) (texts []string) {
	for _, found := range regexp.MustCompile(`<figcaption>(.*?)</figcaption>`).FindAllStringSubmatch(page, -1) {
		texts = append(texts, found[1])
	}
	return texts
}

// The histogram includes each run with a known duration, and the table the slowest ten, whether the timeline
// lists them or not.
func TestDurationsInThePage(t *testing.T) {
	t.Parallel()
	var all []*story
	for i := range 100 {
		all = append(all, (&story{name: fmt.Sprint("quick", i), token: fmt.Sprint(i), host: "n1"}).committed(5, 0.1, 1, 0))
	}
	all = append(all, (&story{name: "slow", token: "slow", host: "n2"}).committed(60, 60, 1, 1))
	timing := &report.Timing{}
	for i := range 5 {
		r := multilock.Result{Name: fmt.Sprint("counted", i), Start: noon, Duration: time.Duration(i+1) * time.Minute}
		r.By.Host = "n3"
		timing.Add(r)
	}
	page := pageOf(t, build(report.Input{Timing: timing}, all...))
	require.Equal(t, []string{
		"Jobs that have ended: <b>106</b>", "Durations of <b>106</b> runs: half took less than about 108ms, nine of ten less than about 108ms", "The slowest runs",
	}, captions(page))
	sum := 0
	for _, text := range bars(page) {
		var n int
		_, err := fmt.Sscanf(text[strings.LastIndex(text, ": ")+2:], "%d run", &n)
		require.NoError(t, err, text)
		sum += n
	}
	require.Equal(t, 106, sum)
	require.Less(t, len(bars(page)), 25)
	_, slowest, _ := strings.Cut(page, `<table id="slowest">`)
	slowest, _, _ = strings.Cut(slowest, "</table>")
	require.Equal(t, 10, strings.Count(slowest, "<tr><td"))
	require.Regexp(t, `(?s)5m00s</td><td><bdi>counted4</bdi></td><td><bdi>n3</bdi>.*4m00s.*3m00s.*2m00s.*1m00s</td><td><bdi>counted0.*1m00s</td><td><bdi>slow</bdi></td><td><bdi>n2</bdi>.*100ms.*quick0<.*quick1<`, slowest)
}

// The curve of an unfinished list continues to the estimated end; jobs that have not begun are a number,
// without rows.
func TestCurveOfAListThatGoesOn(t *testing.T) {
	t.Parallel()
	jobs := []source.ChunkJob{}
	for n := range 10 {
		jobs = append(jobs, source.ChunkJobOf(n+1, source.Result{Name: fmt.Sprint("j", n), Attempt: 1, Final: true, Start: at(float64(n)), Duration: time.Second}))
	}
	chunk := source.Chunk{From: 1, To: 20, Jobs: jobs}
	chunk.Count()
	r := multilock.Result{Name: joblist.ChunkName(source.Range{From: 1, To: 20}), Token: "t", Attempt: 1, Start: noon, Duration: 10 * time.Second, Chunk: &chunk}
	list, err := survey.OpenList(t.Context(), listing{text: "#chunks of 20\n" + strings.Repeat("x\ttrue\n", 100)})
	require.NoError(t, err)
	list.Result(r)
	list.Held(r.Name, 0)
	held := lockgroup.Holding{Name: r.Name, Observation: multilock.Observation{State: multilock.StateHeld, Record: source.Record{Token: "t"}}}
	timeline := report.Build(report.Input{Made: at(10), Results: []multilock.Result{r}, Held: []lockgroup.Holding{held}, List: list})
	require.Equal(t, []int{10, 10, 80}, []int{timeline.Summary.Done, timeline.Summary.Claimed, timeline.Summary.Pending})
	page := pageOf(t, timeline)
	require.Equal(t, "Jobs that have ended: <b>10</b> of 100; 1m30s left at this rate", captions(page)[0])
	require.Regexp(t, `<polyline class="line" points="0,120 4,118.8 8,117.6[^"]* 40,108 40,108"/><polyline class="ahead" points="40,108 400,0"/>`, page)
	require.Contains(t, page, "<dt>Pending</dt><dd>80</dd>")
	require.Len(t, dataOf(t, page).Jobs, 11, "the ten that have ended, and the chunk")

	require.NotContains(t, pageOf(t, crowd(10, 1)), `class="ahead"`)
	require.NotContains(t, pageOf(t, build(report.Input{}, (&story{name: "a", token: "1"}).acquired(1, 1))), "<svg")
}

// listing is a source with only a list.
type listing struct {
	source.ManifestStore
	text string
}

func (l listing) OpenManifest(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(l.text)), nil
}
