package report_test

import (
	"bytes"
	"context"
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
)

// browsers are the programs that can show a page without a screen.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// browser skips where there is none.
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

// patience bounds what would otherwise hang. Nothing that passes comes near it.
const patience = 5 * time.Minute

// loaded is the document that a browser makes of a page, when its script has run,
// with the part of the address behind #. Nothing may be complained about.
func loaded(t *testing.T, timeline *report.Timeline, asked url.Values) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	require.NoError(t, os.WriteFile(file, []byte(pageOf(t, timeline)), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{"--headless", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom"}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.CommandContext(ctx, browser(t), append(args, "file://"+file+"#"+asked.Encode())...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), &stderr)
	require.Empty(t, regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(stderr.String(), -1), "the browser's console")
	return stdout.String()
}

// text is what stands in the element with an id.
func text(t *testing.T, document, id string) string {
	t.Helper()
	found := regexp.MustCompile(`id="` + id + `"[^>]*>([^<]*)<`).FindStringSubmatch(document)
	require.NotNil(t, found, id)
	return html.UnescapeString(found[1])
}

// listed are the names in the list of jobs.
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

// No script of others runs, and no element of theirs comes to be.
func TestForeignTextInABrowser(t *testing.T) {
	t.Parallel()
	document := loaded(t, evilTimeline(), url.Values{"q": {"onerror"}})
	_, after, _ := strings.Cut(document, "<main>")
	shown := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(after, "")
	require.NotRegexp(t, `<(img|svg|script)`, shown)
	require.NotRegexp(t, `<[^>]* on[a-z]+=`, regexp.MustCompile(`"[^"]*"`).ReplaceAllString(shown, ""))
	require.Contains(t, listed(document), evil[0])
}
