package report_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

// dataIn is what the page's script reads.
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

// evil are texts that somebody may put where the page shows them.
var evil = []string{
	`</script><img src=x onerror=alert(1)>`, `<!--<script>`, `"><svg onload=alert(1)>`, "' onmouseover='alert(1)", `{{.}}${alert(1)}`,
	"\x00\x01\x1b[31mred\x7f\u0085", "abc\u202egnp.exe\u200f", "line\u2028separator\u2029", "broken \xff\xfe bytes", "]]>&lt;", strings.Repeat("x", 10<<10),
}

// evilTimeline has each of them wherever one can be.
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
		timeline.Jobs[i].Log = evil[i%len(evil)]
	}
	return timeline
}

// What comes from others is text, in HTML as well as in the script's data. Whatever
// there is of tags and scripts is our own.
func TestForeignTextIsText(t *testing.T) {
	t.Parallel()
	page := pageOf(t, evilTimeline())
	require.Equal(t, 2, strings.Count(page, "<script"))
	require.Equal(t, 2, strings.Count(page, "</script"))
	require.NotContains(t, page, "<img")
	require.NotContains(t, page, "<svg")
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

// crowd is the timeline of a large batch.
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

// The page of ten thousand jobs can be mailed.
func TestSizeOfTheLargePage(t *testing.T) {
	t.Parallel()
	page := pageOf(t, crowd(10_000, 8))
	require.Less(t, len(page), 2<<20)
	data := dataOf(t, page)
	require.Len(t, data.Jobs, 10_000)
	require.Len(t, data.Runs, 10_000)
	require.Len(t, data.Hosts, 8)
}

// Commands of any length do not make the page of many jobs large without a limit.
func TestLongCommandsAreCut(t *testing.T) {
	t.Parallel()
	timeline := crowd(2000, 8)
	for i := range timeline.Jobs {
		timeline.Jobs[i].Command = strings.Repeat(fmt.Sprint(i), 10_000)
	}
	require.Less(t, len(pageOf(t, timeline)), 3<<20)
}

// Without scripts there are the numbers and the failures.
func TestPageWithoutScripts(t *testing.T) {
	t.Parallel()
	timeline := crowd(300, 2)
	timeline.Jobs[7].Log = "/shared/logs/job00007.log"
	plain := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(pageOf(t, timeline), "")
	require.Contains(t, plain, "<dt>Jobs</dt><dd>300</dd>")
	require.Contains(t, plain, "<dt>Failed</dt><dd>3</dd>")
	for _, name := range []string{"job00007", "job00107", "job00207"} {
		require.Regexp(t, `<td><bdi>`+name+`</bdi></td><td><bdi>node2?1?</bdi></td>`, plain)
	}
	require.NotContains(t, plain, "job00008")
	require.Contains(t, plain, "<code><bdi>/shared/logs/job00007.log</bdi></code>")
	require.Contains(t, plain, "<noscript>")
	require.Contains(t, plain, "Nothing in the history contradicts the clocks")
}

func TestManyTroubles(t *testing.T) {
	t.Parallel()
	timeline := crowd(2000, 2)
	for i := range timeline.Jobs {
		timeline.Jobs[i].State = report.Retry
	}
	timeline.Jobs[1999].State = report.Failed
	page := pageOf(t, timeline)
	require.Contains(t, page, "And 1500 more")
	first := regexp.MustCompile(`<tr><td><span class="state s-(\w+)">\w+</span></td><td><bdi>(\w+)`).FindStringSubmatch(page)
	require.Equal(t, []string{"failed", "job01999"}, first[1:], "the worst come first")
}

func TestPageOfNothing(t *testing.T) {
	t.Parallel()
	page := pageOf(t, build(report.Input{Missing: []string{"this source keeps no history"}}))
	require.Contains(t, page, "Nothing has happened in this group")
	require.Contains(t, page, "this source keeps no history")
	require.NotContains(t, page, "<script")
}

// Two machines with one name are two lanes that can be told apart.
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

// A job that is done and whose output is not kept as a whole is among the troubles, from
// the history as from its result alone.
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
		require.Regexp(t, `<td><bdi>`+name+`</bdi></td>.*<bdi>its output is not complete: `+why+`</bdi>`, page)
	}
	require.NotContains(t, page, "<td><bdi>c</bdi></td>")
	require.Contains(t, dataOf(t, page).Texts, "its output is not complete: "+why, "the script shows it, too")
}
