//go:build unix

package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/help"
)

// formerWords were terms of this program. The right side has the terms of the current help texts.
var formerWords = map[string]string{
	`\b(who|whoever|whom)\b`:                     `"a process that ...", "if you ..."`,
	`(^|[.] )What [a-z]`:                         "the noun that is meant",
	`\b(some|no|every|any)body\b`:                "another process, no process, all users",
	`\b(he|his|him)\b`:                           "it, its",
	`\b(tell|tells|told|say|says|said)\b`:        "print, report, notify",
	`\b(forget|forgets|forgot|forgotten)\b`:      "delete",
	`\bg(i|a)ves? back\b`:                        "release",
	`\b[Tt]akes? (the|a) lock([,.]| for| under)`: "acquire",
	`\bbelie(f|ve|ves|ved)\b`:                    "trust",
	`\bsilen(t|ce)\b`:                            "without heartbeat",
	`\bsigns? of life\b`:                         "heartbeat",
	`\btime to live\b`:                           "TTL",
	`\bin line\b`:                                "queue",
	`\bcame first\b`:                             "first come, first served",
	`\b(end|ends|ended|went|goes) well\b`:        "succeed",
	`\bfor good\b`:                               "permanently",
	`\bonce and for all\b`:                       "once",
	`\brefus(e|es|ed|al|als)\b`:                  "held, not acquired, rejected",
	`\bpromises?\b`:                              "guarantee",
	`\b(leftovers|strange)\b`:                    "stale files, unknown files",
	`\b(is|are) at (it|work)\b`:                  "is running it",
	`\bits end\b`:                                "finished",
	`\b(whence|in vain)\b`:                       "from where, without success",
	`\b(is|are) none\b`:                          "what it is",
}

// anyFormerWord matches each of them.
var anyFormerWord = regexp.MustCompile(`(?i)` + strings.Join(slices.Collect(maps.Keys(formerWords)), "|"))

// formerlyAllowed are names of the interface, and texts that are still to be changed.
var formerlyAllowed = []string{
	"say so on each host", "was given first is refused", // batch --add
}

func TestHelpSpeaksPlainly(t *testing.T) {
	app := appForTests()
	texts := map[string]string{"first": help.First(), "program": command.Short(nil), "multilock": command.Long(app, nil)}
	for _, each := range app.VisibleCommands() {
		texts[each.Name+" -h"], texts[each.Name+" --help"] = command.Short(each), command.Long(app, each)
	}
	for _, topic := range help.Topics() {
		texts["help "+topic] = help.Topic(topic)
	}
	require.Greater(t, len(texts), 50)
	for name, text := range texts {
		requirePlain(t, name, text, formerlyAllowed)
	}
}

// messagesAllowed are parts of literals in which a former word has another meaning.
var messagesAllowed = []string{
	"WHAT latest", "WHAT best-effort", "WHAT kill", "What to do:", "server refused TLS", "safe silence",
	"This file says that hosts share",
}

// TestMessagesSpeakPlainly checks the texts in the source of the shipped programs.
func TestMessagesSpeakPlainly(t *testing.T) {
	t.Parallel()
	texts := 0
	for _, dir := range []string{".", "../../multilock", "../../lockgroup", "../../internal"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && slices.Contains([]string{"clitest", "locktest", "explore", "simnfs", "testkit"}, d.Name()) {
				return cmp.Or(err, fs.SkipDir)
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, is := n.(*ast.BasicLit)
				if !is || literal.Kind != token.STRING || !strings.Contains(literal.Value, " ") {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				texts++
				requirePlain(t, path, text, messagesAllowed)
				return true
			})
			return nil
		}))
	}
	require.Greater(t, texts, 1000)
}

// documentsAllowed are parts of documents in which a former word has another meaning.
var documentsAllowed = []string{
	"Time to live (", "says enough then", "message says", "The message says", "could not tell", "there is none", "nothing says", "does not say", "says here until",
	"refuse the connection", "root to nobody", "in a group who", "A warning says", "Any user who", "# forget one result", "the report says", "nobody has fetched",
	"What was tested on a real", "What other users can read", "What Slurm does", "What a job really uses", "What is not guaranteed",
	"by whoever comes first", "/shared/everybody", "is none", "exit code says",
}

// TestDocumentsSpeakPlainly checks the pages for users. Pages for developers are the internals in
// docs/README.md.
func TestDocumentsSpeakPlainly(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	guides, err := filepath.Glob("../../docs/guides/*.md")
	require.NoError(t, err)
	pages = append(append(pages, guides...), "../../README.md", "../../scripts/python/README.md")
	require.Greater(t, len(pages), 30)
	for _, page := range pages {
		if slices.Contains([]string{"architecture.md", "protocol.md", "proof.md", "sources.md", "release.md", "licenses.md"}, filepath.Base(page)) {
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		requirePlain(t, page, string(text), documentsAllowed)
	}
}

// requirePlain searches a text for former words, except in the allowed parts.
func requirePlain(t *testing.T, where, text string, allowed []string) {
	t.Helper()
	flat := regexp.MustCompile(`\s+`).ReplaceAllString(text, " ")
	for _, piece := range allowed {
		flat = strings.ReplaceAll(flat, piece, "")
	}
	if !anyFormerWord.MatchString(flat) {
		return
	}
	for word, instead := range formerWords {
		if found := regexp.MustCompile(`(?i)` + word).FindStringIndex(flat); found != nil {
			t.Errorf("%s: ...%s...: write %s", where, flat[max(0, found[0]-40):min(len(flat), found[1]+20)], instead)
		}
	}
}

// Each topic is referenced in the help of the program or of a command.
func TestTopicsAreReachable(t *testing.T) {
	app := appForTests()
	all := command.Long(app, nil)
	for _, each := range app.VisibleCommands() {
		all += command.Long(app, each)
		for _, topic := range help.About(each.Name) {
			require.NotEmpty(t, help.Topic(topic), "%s of %s", topic, each.Name)
		}
	}
	for _, topic := range help.Topics() {
		require.Regexp(t, `(?s)multilock help [a-zT,\s-]*\b`+topic+`\b|\(multilock help TOPIC\): [^:]*\b`+topic+`\b`, all)
	}
}
