package report_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func pageOf(t *testing.T, timeline *report.Timeline) string {
	t.Helper()
	page, err := report.Page(timeline)
	require.NoError(t, err)
	return string(page)
}

// dataIn is the data of the page's script.
type dataIn struct {
	Texts             []string
	Hosts, Jobs, Runs [][]any
}

func dataOf(t *testing.T, page string) dataIn {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(page)
	require.NotNil(t, found)
	var data dataIn
	require.NoError(t, json.Unmarshal([]byte(found[1]), &data))
	return data
}

// evil are texts that an attacker may put where the page shows them.
var evil = []string{
	`</script><img src=x onerror=alert(1)>`, `<!--<script>`, `"><svg onload=alert(1)>`, "' onmouseover='alert(1)", `{{.}}${alert(1)}`,
	"\x00\x01\x1b[31mred\x7f\u0085", "abc\u202egnp.exe\u200f", "line\u2028separator\u2029", "broken \xff\xfe bytes", "]]>&lt;", strings.Repeat("x", 10<<10),
}

// evilTimeline has each of them in all places.
func evilTimeline() *report.Timeline {
	some := strings.Join(evil[:10], " ")
	in := report.Input{Title: some, Base: some, Group: some}
	in.Missing = evil
	var all []*story
	for i, text := range evil {
		s := &story{name: text, token: fmt.Sprint(i), host: text}
		s.committed(5, 1, 1, 3).brokenBy(6, text)
		for k := range s.events {
			e := &s.events[k]
			e.User, e.Command, e.Why, e.Signal = text, text, text, text
		}
		all = append(all, s)
		in.Results = append(in.Results, multilock.Result{Name: "r" + text, Foreign: text})
	}
	early := (&story{name: evil[0], token: "x", host: evil[0]}).acquired(50, 1).ended(51, 1, source.EventReleased, code(0))
	late := (&story{name: evil[0], token: "y", host: evil[2]}).acquired(40, 2)
	timeline := build(in, append(all, early, late)...)
	for i := range timeline.Jobs {
		timeline.Jobs[i].Log, timeline.Jobs[i].Tail = evil[i%len(evil)], evil[i%len(evil)]
	}
	return timeline
}

// Foreign text is only text, in HTML as well as in the script's data. All tags and scripts are our own.
func TestForeignTextIsText(t *testing.T) {
	t.Parallel()
	page := pageOf(t, evilTimeline())
	require.Equal(t, 2, strings.Count(page, "<script"))
	require.Equal(t, 2, strings.Count(page, "</script"))
	require.NotContains(t, page, "<img")
	require.Equal(t, strings.Count(page, "<svg"), strings.Count(page, `<svg class="plot" viewBox`))
	require.NotContains(t, page, "<!--")
	require.NotRegexp(t, `[\x{202a}-\x{202e}\x{2066}-\x{2069}\x{200e}\x{200f}\x{2028}\x{2029}\x{80}-\x{9f}]`, page, "marks that turn the direction, or end a line of script")
	require.NotRegexp(t, `[\x00-\x08\x0b-\x1f\x7f]`, page)
	require.Contains(t, page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;")

	texts := dataOf(t, page).Texts
	require.Contains(t, texts, evil[0], "the script gets it as it is, and shows it as text")
	require.Contains(t, texts, "abc\ufffdgnp.exe\ufffd")
	for _, text := range texts {
		require.LessOrEqual(t, len([]rune(text)), 4001)
	}
}

// The page's policy allows its own style and its own script, and nothing else.
func TestPageLoadsNothing(t *testing.T) {
	t.Parallel()
	page := pageOf(t, evilTimeline())
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, policy)
	allowed := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1])
	require.Contains(t, allowed, "default-src 'none'")
	require.NotContains(t, allowed, "unsafe")
	for tag, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		inline := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		require.Len(t, inline, 1)
		sum := sha256.Sum256([]byte(inline[0][1]))
		require.Contains(t, allowed, directive+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.NotRegexp(t, `<(link|iframe|object|embed|base)\b|\bsrc=["']|url\(|@import|https?://`, regexp.MustCompile(`(?s)<main>.*</main>|<script type.*?</script>`).ReplaceAllString(page, ""))
}

// crowd returns the timeline of a large batch.
func crowd(jobs, hosts int) *report.Timeline {
	var all []*story
	for i := range jobs {
		s := &story{name: fmt.Sprintf("job%05d", i), token: fmt.Sprintf("token-%032d", i), host: fmt.Sprintf("node%d", i%hosts)}
		exit := 0
		if i%100 == 7 {
			exit = 1
		}
		s.committed(float64(i)/100+1, float64(i%90)/100, 1, exit)
		s.events[0].Command = fmt.Sprintf("./convert --input part%05d.dat --output part%05d.out", i, i)
		all = append(all, s)
	}
	return build(report.Input{}, all...)
}

// The page of ten thousand jobs is small enough for mail.
func TestSizeOfTheLargePage(t *testing.T) {
	t.Parallel()
	page := pageOf(t, crowd(10_000, 8))
	require.Less(t, len(page), 2<<20)
	data := dataOf(t, page)
	require.Len(t, data.Jobs, 10_000)
	require.Len(t, data.Runs, 10_000)
	require.Len(t, data.Hosts, 8)
}

// Long commands do not make the page of many jobs arbitrarily large.
func TestLongCommandsAreCut(t *testing.T) {
	t.Parallel()
	timeline := crowd(2000, 8)
	for i := range timeline.Jobs {
		timeline.Jobs[i].Command = strings.Repeat(fmt.Sprint(i), 10_000)
	}
	require.Less(t, len(pageOf(t, timeline)), 3<<20)
}

// Without scripts the page shows the numbers and the failures.
func TestPageWithoutScripts(t *testing.T) {
	t.Parallel()
	timeline := crowd(300, 2)
	timeline.Jobs[7].Log = "/shared/logs/job00007.log"
	plain := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(pageOf(t, timeline), "")
	require.Contains(t, plain, "<dt>Jobs</dt><dd>300</dd>")
	require.Contains(t, plain, "<dt>Failed</dt><dd>3</dd>")
	for _, name := range []string{"job00007", "job00107", "job00207"} {
		require.Contains(t, plain, `<td class="job"><bdi>`+name+`</bdi></td>`)
	}
	require.Contains(t, plain, `<summary><b><bdi>exit 1</bdi></b> on <bdi>node1</bdi>: 3 jobs</summary>`)
	require.NotContains(t, plain, "job00008")
	require.Contains(t, plain, "<code><bdi>/shared/logs/job00007.log</bdi></code>")
	require.Contains(t, plain, "<noscript>")
	require.Contains(t, plain, "Nothing in the history contradicts the clocks")
}

// All failures are counted, and some are listed: the worst of each group first.
func TestManyTroubles(t *testing.T) {
	t.Parallel()
	timeline := crowd(2000, 2)
	for i := range timeline.Jobs {
		timeline.Jobs[i].State = report.Retry
	}
	timeline.Jobs[1998].State = report.Failed
	groups := timeline.Failures()
	require.Len(t, groups, 3)
	require.Equal(t, []any{"exit 0", "node0", 1000}, []any{groups[0].How, groups[0].Host, groups[0].Count})
	require.Equal(t, []any{"exit 0", "node1", 980}, []any{groups[1].How, groups[1].Host, groups[1].Count})
	require.Equal(t, []any{"exit 1", "node1", 20}, []any{groups[2].How, groups[2].Host, groups[2].Count})
	require.Equal(t, []int{240, 240, 20}, []int{len(groups[0].Jobs), len(groups[1].Jobs), len(groups[2].Jobs)})
	require.Equal(t, "job01998", groups[0].Jobs[0].Name)
	page := pageOf(t, timeline)
	require.Contains(t, page, "And 760 more")
	require.Contains(t, page, "And 740 more")
	require.Equal(t, 1, strings.Count(page, `<details class="group" open>`), "the others are opened by the reader")
	require.Equal(t, 500, strings.Count(page, `<tr data-job=`))
}

// Every host fails in its own way, in more groups than a page can show.
func TestManyGroupsOfFailures(t *testing.T) {
	t.Parallel()
	var all []*story
	for i := range 150 {
		all = append(all, (&story{name: fmt.Sprint("j", i), token: fmt.Sprint(i), host: fmt.Sprint("n", i)}).committed(5, 1, 1, i+1))
	}
	page := pageOf(t, build(report.Input{}, all...))
	require.Equal(t, 100, strings.Count(page, `<details class="group"`))
	require.Contains(t, page, "And 50 more jobs that ended in other ways or on other hosts")
}

// Each attempt is a run of the timeline, with its number and its outcome.
func TestRetriesInThePage(t *testing.T) {
	t.Parallel()
	s := &story{name: "a", token: "1", host: "n1"}
	data := dataOf(t, pageOf(t, build(report.Input{}, s.committed(10, 3, 1, 4).committed(15, 2, 2, 4).committed(20, 2, 3, 0))))
	require.Len(t, data.Jobs, 1)
	var attempts [][]any
	for _, run := range data.Runs {
		attempts = append(attempts, []any{run[0], run[7], run[8]})
	}
	require.Equal(t, [][]any{{0.0, 1.0, 4.0}, {0.0, 2.0, 4.0}, {0.0, 3.0, 0.0}}, attempts)
}

// The end of a job's output is shown from the beginning of a line.
func TestTailsInThePage(t *testing.T) {
	t.Parallel()
	timeline := crowd(10, 1)
	timeline.Jobs[7].Tail = "first line\n" + strings.Repeat("a line <b>&\r\n", 1000) + "10%\r20%\rout of \x1b[31mmemory"
	found := regexp.MustCompile(`(?s)<pre class="tail">(.*?)</pre>`).FindAllStringSubmatch(pageOf(t, timeline), -1)
	require.Len(t, found, 1)
	tail := html.UnescapeString(found[0][1])
	require.LessOrEqual(t, len(tail), report.MaxTail+2)
	require.Regexp(t, `^a line <b>&\na line`, tail)
	require.Contains(t, tail, "\n10%\n20%\nout of \ufffd[31mmemory")
	require.NotContains(t, tail, "first line")
	require.NotContains(t, found[0][1], "<b>")
}

func TestPageOfNothing(t *testing.T) {
	t.Parallel()
	page := pageOf(t, build(report.Input{Missing: []string{"this source keeps no history"}}))
	require.Contains(t, page, "Nothing has happened in this group")
	require.Contains(t, page, "this source keeps no history")
	require.NotContains(t, page, "<script")
}

// Two machines with the same name have two distinguishable lanes.
func TestTwinsInThePage(t *testing.T) {
	t.Parallel()
	var all []*story
	for i, machine := range []string{"aaaa1111", "bbbb2222"} {
		s := (&story{name: fmt.Sprint(i), token: fmt.Sprint(i), host: "clone"}).committed(1, 1, 1, 0)
		s.events[0].By.Machine = machine
		all = append(all, s)
	}
	page := pageOf(t, build(report.Input{}, all...))
	require.Contains(t, page, "<bdi>clone (aaaa…)</bdi>")
	require.Contains(t, page, "<bdi>clone (bbbb…)</bdi>")
}

// A job that is done, but whose output is incomplete, needs attention, according to the history as well as
// to its result alone.
func TestIncompleteOutputInThePage(t *testing.T) {
	t.Parallel()
	const why = "write a.log: no space left on device"
	told := &story{name: "a", token: "1", host: "n1"}
	told.tell(5, source.EventCommitted, func(e *source.Event) { e.Attempt, e.Exit, e.Output = 1, code(0), why })
	recorded := multilock.Result{Name: "b", Token: "2", Attempt: 1, Final: true, Output: why, Start: at(1), Duration: held(1)}
	whole := (&story{name: "c", token: "3", host: "n1"}).committed(6, 1, 1, 0)
	timeline := build(report.Input{Results: []multilock.Result{recorded}}, told, whole)
	require.Equal(t, []int{3, 3, 2}, []int{timeline.Summary.Jobs, timeline.Summary.Done, timeline.Summary.Incomplete})
	for i, want := range []string{why, why, ""} {
		job := timeline.Jobs[i]
		require.Equal(t, report.Done, job.State)
		require.Equal(t, []string{want, want}, []string{job.Output, job.Runs[0].Output})
		require.Equal(t, want != "", job.Trouble())
	}
	page := pageOf(t, timeline)
	require.Contains(t, page, "<dt>Output incomplete</dt><dd>2</dd>")
	for _, name := range []string{"a", "b"} {
		require.Regexp(t, `<td class="job"><bdi>`+name+`</bdi></td>.*<bdi>its output is not complete: `+why+`</bdi>`, page)
	}
	require.NotContains(t, page, `<td class="job"><bdi>c</bdi></td>`)
	require.Contains(t, dataOf(t, page).Texts, "its output is not complete: "+why, "the script shows it, too")
}
