package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Runs at the same time are in different rows; one that begins when another ends takes its row.
func TestRows(t *testing.T) {
	t.Parallel()
	var all []*story
	for i, span := range [][2]float64{{0, 10}, {2, 4}, {4, 6}, {5, 12}, {10, 11}} {
		s := &story{name: fmt.Sprintf("j%d", i), token: fmt.Sprint(i), host: "n1"}
		all = append(all, s.committed(span[1], span[1]-span[0], 1, 0))
	}
	timeline := build(report.Input{}, all...)
	var rows []int
	for _, job := range timeline.Jobs {
		rows = append(rows, job.Runs[0].Row)
	}
	require.Equal(t, []int{0, 1, 1, 2, 0}, rows)
	host := timeline.Hosts[0]
	require.Equal(t, []any{3, 5, 5, 0}, []any{host.Rows, host.Runs, host.Done, host.Failed})
	require.InDelta(t, 10+2+2+7+1, host.Busy, 1e-9)
	require.InDelta(t, 22.0/36, host.Utilisation, 1e-9)
	s := timeline.Summary
	require.Equal(t, []any{at(0), at(12)}, []any{s.Start, s.End})
	require.InDelta(t, 12, s.Elapsed, 1e-9)
	require.InDelta(t, 5*300/3600., s.Rate, 1e-9)
}

// Jobs of a chunk that ran one after another are in one row, and kept it busy.
func TestRowOfAChunk(t *testing.T) {
	t.Parallel()
	const jobs, took = 50, 1234567 * time.Nanosecond
	chunk := &source.Chunk{From: 1, To: jobs}
	for n := range jobs {
		r := source.Result{Name: fmt.Sprint(n), Attempt: 1, Final: true, Start: noon.Add(time.Duration(n) * took), Duration: took}
		chunk.Jobs = append(chunk.Jobs, source.ChunkJobOf(n+1, r))
	}
	chunk.Count()
	r := multilock.Result{Name: joblist.ChunkName(source.Range{From: 1, To: jobs}), Token: "t", Attempt: 1, Final: true, Start: noon, Duration: jobs * took, Chunk: chunk}
	r.By.Host = "n1"
	host := report.Build(report.Input{Results: []multilock.Result{r}}).Hosts[0]
	require.Equal(t, []int{1, jobs}, []int{host.Rows, host.Runs})
	require.Greater(t, host.Utilisation, 0.99)
}

// No two runs of a row overlap, however many there are.
func TestRowsNeverOverlap(t *testing.T) {
	t.Parallel()
	var all []*story
	for i := range 2000 {
		end := float64(i*7919%5000) / 10
		s := &story{name: fmt.Sprint(i), token: fmt.Sprint(i), host: fmt.Sprintf("n%d", i%3)}
		all = append(all, s.committed(end+float64(i%40), float64(i%40), 1, 0))
	}
	timeline := build(report.Input{}, all...)
	type place struct {
		host string
		row  int
	}
	rows := map[place][]report.Run{}
	for _, job := range timeline.Jobs {
		p := place{job.Runs[0].Host, job.Runs[0].Row}
		for _, other := range rows[p] {
			require.False(t, job.Runs[0].Start.Before(other.End) && other.Start.Before(job.Runs[0].End), "%v and %v", job.Runs[0], other)
		}
		rows[p] = append(rows[p], job.Runs[0])
	}
}

// Waiting takes up room, too, and an end before the start, by another host's clock, causes no error.
func TestOddSpans(t *testing.T) {
	t.Parallel()
	one := (&story{name: "a", token: "1", host: "n1"}).committed(9, 1, 1, 0)
	two := (&story{name: "b", token: "2", host: "n1"}).acquired(10, 1).ended(12, 2, source.EventReleased, code(0)) // waiting since 8
	timeline := build(report.Input{}, one, two)
	require.Equal(t, 2, timeline.Hosts[0].Rows)

	backwards := (&story{name: "a", token: "1", host: "n1"}).acquired(50, 1).brokenBy(20, "n2")
	timeline = build(report.Input{}, backwards)
	require.Zero(t, timeline.Hosts[0].Busy)
	require.Zero(t, timeline.Summary.Elapsed)
}

func TestOrderOfHosts(t *testing.T) {
	t.Parallel()
	var all []*story
	for i, host := range []string{"node10", "node2", "alpha", "node2-b", "node", "7", "node02x"} {
		all = append(all, (&story{name: fmt.Sprint(i), token: fmt.Sprint(i), host: host}).committed(1, 1, 1, 0))
	}
	twin := &story{name: "twin", token: "twin", host: "alpha"}
	twin.tell(1, source.EventCommitted, func(e *source.Event) { e.By.Machine = "feed" })
	var names []string
	for _, h := range build(report.Input{}, append(all, twin)...).Hosts {
		names = append(names, h.Host+h.Machine)
	}
	require.Equal(t, []string{"7", "alpha", "alphafeed", "node", "node2", "node2-b", "node02x", "node10"}, names)
}

// Fencing numbers determine which host held a lock first, whatever the clocks show.
func TestClockGaps(t *testing.T) {
	t.Parallel()
	turn := func(token, host string, fence uint64, from, to float64) *story {
		return (&story{name: "a", token: token, host: host}).acquired(from, fence).ended(to, to-from, source.EventReleased, code(0))
	}
	gaps := func(stories ...*story) []report.ClockGap { return build(report.Input{}, stories...).Clocks }
	require.Empty(t, gaps(turn("1", "n1", 1, 10, 20), turn("2", "n2", 2, 19, 30)), "a release is written down when the lock may be another's already")
	require.Equal(t, []report.ClockGap{{Ahead: "n1", Behind: "n2", AtLeast: 3, Name: "a"}}, gaps(turn("1", "n1", 1, 10, 20), turn("2", "n2", 2, 7, 9)))
	require.Equal(t, []report.ClockGap{{Ahead: "n1", Behind: "n2", AtLeast: 5, Name: "a"}},
		gaps(turn("1", "n1", 1, 10, 20), turn("2", "n2", 2, 7, 9), turn("3", "n1", 3, 12, 13), turn("4", "n2", 4, 7, 9)), "the largest counts")
	require.Empty(t, gaps(turn("1", "n1", 1, 10, 20), turn("2", "n1", 2, 7, 9)), "a clock that was set is no gap between hosts")

	lost := (&story{name: "a", token: "1", host: "n1"}).acquired(10, 1).ended(20, 10, source.EventLost, nil)
	require.Empty(t, gaps(lost, turn("2", "n2", 2, 7, 9)), "who lost a lock may write anything late")
	broken := (&story{name: "a", token: "1", host: "n1"}).acquired(10, 1).brokenBy(15, "n3")
	require.Empty(t, gaps(broken, turn("2", "n2", 2, 7, 9)))
	committed := (&story{name: "a", token: "1", host: "n1"}).acquired(10, 1).committed(20, 10, 1, 0).ended(21, 11, source.EventReleased, code(0))
	require.Equal(t, []report.ClockGap{{Ahead: "n1", Behind: "n2", AtLeast: 2, Name: "a"}}, gaps(committed, turn("2", "n2", 2, 18, 30)))
}

// browsers are the programs that can render a page without a display.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// browser skips the test without a browser.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("left out: needs a browser to load the page in, one of " + strings.Join(browsers, ", "))
	return ""
}

// patience is a timeout far above any normal duration.
const patience = 5 * time.Minute

// loaded returns the document of a page in a browser after its script has run, with this fragment in the
// URL. It requires that there are no errors.
func loaded(t *testing.T, timeline *report.Timeline, asked url.Values) string {
	t.Helper()
	dir := t.TempDir()
	return loadedPage(t, dir, pageOf(t, timeline), asked)
}

// loadedPage is loaded for the text of a page.
func loadedPage(t *testing.T, dir, page string, asked url.Values, options ...string) string {
	t.Helper()
	file := filepath.Join(dir, "page.html")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{"--headless", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom"}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.CommandContext(ctx, browser(t), append(append(args, options...), "file://"+file+"#"+asked.Encode())...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), &stderr)
	require.Empty(t, regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(stderr.String(), -1), "the browser's console")
	return stdout.String()
}

// text returns the content of the element with an id.
func text(t *testing.T, document, id string) string {
	t.Helper()
	found := regexp.MustCompile(`id="` + id + `"[^>]*>([^<]*)<`).FindStringSubmatch(document)
	require.NotNil(t, found, id)
	return html.UnescapeString(found[1])
}

// listed returns the names in the list of jobs.
func listed(document string) []string {
	_, body, _ := strings.Cut(document, `<table id="jobs">`)
	var names []string
	for _, found := range regexp.MustCompile(`<button type="button"><bdi>(.*?)</bdi></button>`).FindAllStringSubmatch(body, -1) {
		names = append(names, html.UnescapeString(found[1]))
	}
	return names
}

func TestLargePageInABrowser(t *testing.T) {
	t.Parallel()
	timeline := crowd(10_000, 8)
	document := loaded(t, timeline, nil)
	require.Regexp(t, `<canvas id="lanes"[^>]* data-hosts="8"`, document)
	require.Contains(t, document, `aria-label="Timeline of 10,000 runs of 10,000 jobs on 8 hosts"`)
	require.Equal(t, "10,000 jobs", text(t, document, "count"))
	require.Equal(t, "Show 200 more (9,800 are left)", text(t, document, "more"))
	require.Len(t, listed(document), 200)
	require.Equal(t, []string{"job00007", "job00107"}, listed(document)[:2], "failures come first")

	document = loaded(t, timeline, url.Values{"q": {"PART0123 node3"}})
	require.Equal(t, "1 of 10,000 jobs", text(t, document, "count"))
	require.Equal(t, []string{"job01235"}, listed(document))

	document = loaded(t, timeline, url.Values{"state": {"failed"}, "host": {"node7"}})
	require.Equal(t, "50 of 10,000 jobs", text(t, document, "count"))
}

// The search finds jobs by their output, and keeps it with the failures.
func TestSearchOfOutputInABrowser(t *testing.T) {
	t.Parallel()
	timeline := crowd(300, 2)
	timeline.Jobs[107].Tail = "Out of Memory\n"
	document := loaded(t, timeline, url.Values{"q": {"memory"}})
	require.Equal(t, []string{"job00107"}, listed(document))
	rows := regexp.MustCompile(`<tr data-job="(\d+)"( hidden="")?><td><span`).FindAllStringSubmatch(document, -1)
	require.Len(t, rows, 3)
	for _, row := range rows {
		require.Equal(t, row[1] != "107", row[2] != "", row[0])
	}
}

// On a screen of 400 pixels, in light and dark, nothing is wider than the screen, and no texts overlap.
func TestNarrowPageInABrowser(t *testing.T) {
	t.Parallel()
	timeline := crowd(300, 3)
	timeline.Summary.Jobs, timeline.Summary.Done = 1_000_000, 999_990
	timeline.Jobs[7].Tail = strings.Repeat("a_long_word_without_a_space", 20)
	timeline.Jobs[107].Log = "multilock -d /shared/some/long/path/to/a/directory -g convert logs " + strings.Repeat("x", 100)
	page := regexp.MustCompile(`<meta http-equiv[^>]*>`).ReplaceAllString(pageOf(t, timeline), "") // for the script below
	page = strings.Replace(page, "</body>", `<script>
const wide = [], over = [];
const boxes = [...document.querySelectorAll("h1, h2, p, figure, figcaption, svg, summary, .tiles div, .ticks, .bar, #scroller, #overview")].filter((one) => one.offsetParent || one.tagName === "svg");
for (const one of boxes) if (one.getBoundingClientRect().right > innerWidth + 1) wide.push(one.tagName + one.className);
for (const one of document.querySelectorAll("#failures .wide, .tiles div")) if (one.scrollWidth > one.clientWidth) wide.push(one.className + " " + one.textContent.slice(0, 30));
const texts = boxes.filter((one) => /^(H1|H2|P|FIGCAPTION|SUMMARY|DIV)$/.test(one.tagName) && !one.closest("[hidden]") && one.getBoundingClientRect().width > 2);
texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
  const x = a.getBoundingClientRect(), y = b.getBoundingClientRect();
  if (a.contains(b) || b.contains(a)) return;
  if (x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1) over.push(a.textContent.slice(0, 30) + " / " + b.textContent.slice(0, 30));
}));
parent.document.body.dataset.found = JSON.stringify({ width: innerWidth, page: document.documentElement.scrollWidth, texts: texts.length, wide, over, dark: matchMedia("(prefers-color-scheme: dark)").matches });
</script></body>`, 1)
	frame := `<!DOCTYPE html><meta name="color-scheme" content="light dark"><body><iframe width="400" height="900" style="border: 0" srcdoc="` + html.EscapeString(page) + `"></iframe></body>` // no window is as narrow
	for name, options := range map[string][]string{"light": nil, "dark": {"--force-dark-mode", "--blink-settings=preferredColorScheme=0"}} {
		t.Run(name, func(t *testing.T) {
			document := loadedPage(t, t.TempDir(), frame, nil, options...)
			found := regexp.MustCompile(`<body data-found="([^"]*)"`).FindStringSubmatch(document)
			require.NotNil(t, found)
			var v struct {
				Width, Page, Texts int
				Wide, Over         []string
				Dark               bool
			}
			require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(found[1])), &v))
			require.Equal(t, 400, v.Width)
			require.LessOrEqual(t, v.Page, 400)
			require.Greater(t, v.Texts, 10)
			require.Empty(t, v.Wide)
			require.Empty(t, v.Over)
			require.Equal(t, name == "dark", v.Dark)
		})
	}
}

// No foreign script runs, and no foreign element is created.
func TestForeignTextInABrowser(t *testing.T) {
	t.Parallel()
	document := loaded(t, evilTimeline(), url.Values{"q": {"onerror"}})
	_, after, _ := strings.Cut(document, "<main>")
	shown := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(after, "")
	require.NotRegexp(t, `<(img|svg|script)`, strings.ReplaceAll(shown, `<svg class="plot" `, ""))
	require.NotRegexp(t, `<[^>]* on[a-z]+=`, regexp.MustCompile(`"[^"]*"`).ReplaceAllString(shown, ""))
	require.Contains(t, listed(document), evil[0])
}
