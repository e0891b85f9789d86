package help_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

const top = "../../../.."

// TestTroubleshootingHasEachMessage compares the page with the source in both directions: the program prints
// each message on the page, and the page has each message that needs an explanation.
func TestTroubleshootingHasEachMessage(t *testing.T) {
	t.Parallel()
	shown := shownMessages(t)
	require.Greater(t, len(shown), 30)
	all, troubling := messages(t)
	require.Greater(t, len(troubling), 30)
	for _, pattern := range shown {
		if !slices.ContainsFunc(all, func(text string) bool { return matches(pattern, text) }) {
			t.Errorf("no message of the program is like this any more: %s", pattern)
		}
	}
	for _, text := range troubling {
		explained := slices.ContainsFunc(shown, func(pattern string) bool { return matches(pattern, text) })
		if exempt := slices.ContainsFunc(selfExplaining, func(part string) bool { return strings.Contains(text, part) }); exempt == explained {
			t.Errorf("docs/troubleshooting.md should have an entry, or the message be exempt, but not both: %s", text)
		}
	}
	for _, part := range selfExplaining {
		require.True(t, slices.ContainsFunc(troubling, func(text string) bool { return strings.Contains(text, part) }), "no message: %s", part)
	}
}

// selfExplaining are parts of messages that need no explanation.
var selfExplaining = []string{
	"is run again under another lock", "because other jobs of their chunk are running", "of that kind; --json names them all",
	"for more do not fit into memory", "the middle of the output was dropped", "no output of runs under the lock",
	"is not the directory of a manifest", "is where multilock keeps its own files", "that is not multilock's own directory",
	"it has another name elsewhere",
}

// matches reports whether a text contains the pieces between the dots of a pattern, in order.
func matches(pattern, text string) bool {
	for piece := range strings.SplitSeq(pattern, "...") {
		_, rest, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// shownMessages returns the indented lines of the page that are not commands.
func shownMessages(t *testing.T) (found []string) {
	t.Helper()
	page, err := os.ReadFile(top + "/docs/troubleshooting.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		text, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		if indented && !regexp.MustCompile(`^(multilock|sudo|for|[a-z]+=|#) `).MatchString(text) {
			found = append(found, text)
		}
	}
	return found
}

// hasOwnAdvice matches files whose messages contain advice: findings of doctor, and servers, which have their
// own pages.
var hasOwnAdvice = regexp.MustCompile(`/command/doctor\.go|/jointest/|/(mongo|pg|etcd|s3)lock/|/remote/|/cloudshell/|/faultfs/|/locktest/`)

// messages returns all texts in the source, and those that end a command or warn: errors with an exit code,
// problems of a directory, hints at system errors, and warnings.
func messages(t *testing.T) (all, troubling []string) {
	t.Helper()
	for _, dir := range []string{"cmd/multilock", "lockgroup", "multilock"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(top, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			elsewhere := hasOwnAdvice.MatchString(filepath.ToSlash(path))
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if expr, is := n.(ast.Expr); is {
					if text := literal(expr); strings.Trim(text, "."+`"`) != "" {
						all = append(all, text)
					}
				}
				if !elsewhere {
					troubling = append(troubling, troubleIn(n)...)
				}
				return true
			})
			return nil
		}))
	}
	return all, troubling
}

func troubleIn(n ast.Node) (found []string) {
	add := func(expr ast.Expr) {
		if text := literal(expr); regexp.MustCompile(`[a-z]{3} [a-z]`).MatchString(text) {
			found = append(found, text)
		}
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		fields := map[string]ast.Expr{}
		for _, each := range n.Elts {
			if field, is := each.(*ast.KeyValueExpr); is {
				if key, is := field.Key.(*ast.Ident); is {
					fields[key.Name] = field.Value
				}
			}
		}
		switch what := name(n.Type); {
		case what == "CodedError" && fields["Text"] != nil:
			add(fields["Text"])
		case what == "InvalidError" && regexp.MustCompile("base directory|lock group").MatchString(literal(fields["What"])):
			add(fields["Why"])
		}
	case *ast.CallExpr:
		if what := name(n.Fun); what == "Say" && strings.HasPrefix(literal(n.Args[0]), "warning: ") || what == "refuse" {
			add(n.Args[0])
		}
	case *ast.FuncDecl:
		if n.Name.Name == "Hint" {
			ast.Inspect(n, func(n ast.Node) bool {
				if expr, is := n.(*ast.BasicLit); is {
					add(expr)
				}
				return true
			})
		}
	}
	return found
}

// name returns the name of a type or a function, without its package.
func name(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

var verb = regexp.MustCompile(`%[-+#.0-9]*[a-z]`)

// literal returns the text of an expression, with dots for parts that are only known when it is printed.
func literal(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return verb.ReplaceAllString(strings.ReplaceAll(text, "%q", `"..."`), "...")
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	case *ast.CallExpr:
		if what := name(e.Fun); len(e.Args) > 0 && (what == "Sprintf" || what == "Errorf" || what == "New") {
			return literal(e.Args[0])
		}
	}
	return "..."
}

// TestTroubleshootingHasEachExitCode checks the table of "multilock help exit-codes".
func TestTroubleshootingHasEachExitCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(top + "/docs/troubleshooting.md")
	require.NoError(t, err)
	codes := regexp.MustCompile(`(?m)^ +([0-9]+(?:\+n)?)  `).FindAllStringSubmatch(console.ExitTable, -1)
	require.Len(t, codes, 11)
	for _, code := range codes {
		require.Contains(t, string(page), "\n| "+code[1]+" | ", "a row for the exit code %s", code[1])
	}
}
