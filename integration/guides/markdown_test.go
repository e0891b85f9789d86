package guides_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a piece of code in a document, without its indentation.
type block struct {
	doc  string
	line int // first line in the document
	text string
}

// documents returns the documents whose blocks are all run.
func documents(t *testing.T) []string {
	t.Helper()
	guides, err := filepath.Glob("../../docs/guides/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, guides)
	return append(guides, "../../README.md")
}

func allBlocks(t *testing.T) []block {
	t.Helper()
	var found []block
	for _, path := range documents(t) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		found = append(found, blocks(filepath.Base(path), string(content))...)
	}
	return found
}

// blocks returns fenced blocks, and blocks after an empty line that are indented by four or more
// columns.
func blocks(doc, text string) []block {
	var found []block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		begin, end := i, i
		switch {
		case strings.HasPrefix(strings.TrimSpace(lines[i]), "```"):
			begin++
			for end = begin; end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), "```"); end++ {
			}
			i = end
		case indented(lines[i]) && (i == 0 || strings.TrimSpace(lines[i-1]) == ""):
			for ; end < len(lines) && (indented(lines[end]) || strings.TrimSpace(lines[end]) == ""); end++ {
			}
			i = end - 1
		default:
			continue
		}
		found = append(found, block{doc, begin + 1, outdent(lines[begin:end])})
	}
	return found
}

func indented(line string) bool {
	return strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != ""
}

func outdent(lines []string) string {
	least := -1
	for _, line := range lines {
		if rest := strings.TrimLeft(line, " "); rest != "" && (least < 0 || len(line)-len(rest) < least) {
			least = len(line) - len(rest)
		}
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			out[i] = line[least:]
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n")) + "\n"
}

func TestBlocksOfMarkdown(t *testing.T) {
	const text = "# A\n\n    one\n\n      two\n\ntext\n    not code\n\n- item\n\n      three\n\n```sh\nfour\n```\n"
	require.Equal(t, []block{{"x", 3, "one\n\n  two\n"}, {"x", 12, "three\n"}, {"x", 15, "four\n"}}, blocks("x", text))
}
