package cloudshell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// element is a piece of XML to be sent: text, or children.
type element struct {
	name     string
	text     string
	children []element
}

func leaf(name, text string) element { return element{name: name, text: text} }

func node(name string, children ...element) element { return element{name: name, children: children} }

// encode writes XML as the genuine clients do: in ASCII, without a declaration,
// namespaces or white space between elements.
func (e element) encode() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

func (e element) write(b *strings.Builder) {
	if e.text == "" && len(e.children) == 0 {
		b.WriteString("<" + e.name + " />")
		return
	}
	b.WriteString("<" + e.name + ">")
	writeText(b, e.text)
	for _, child := range e.children {
		child.write(b)
	}
	b.WriteString("</" + e.name + ">")
}

// writeText escapes what XML or ASCII has no character for. What XML cannot even
// name becomes the replacement character.
func writeText(b *strings.Builder, text string) {
	for _, r := range text {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r >= ' ' && r < utf8.RuneSelf-1:
			b.WriteRune(r)
		case !isXMLChar(r):
			fmt.Fprintf(b, "&#%d;", utf8.RuneError)
		default:
			fmt.Fprintf(b, "&#%d;", r)
		}
	}
}

// isXMLChar is the production Char of XML 1.0.
func isXMLChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}
