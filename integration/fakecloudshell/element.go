package fakecloudshell

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// element is one XML element of a request. Attributes are ignored: requests have
// none.
type element struct {
	name     string
	text     string
	children []*element
	start    int // where its content begins in the request
	end      int // and where the content ends
}

const (
	mark     = "\ufeff" // the byte order mark, in UTF-8
	maxDepth = 16       // of elements in each other; no method needs more than 4
)

// parseElement reads a request: one element, in UTF-8 or ASCII, with or without a
// declaration or byte order mark.
func parseElement(body []byte) (*element, error) {
	if !bytes.HasPrefix(body, []byte(mark)) {
		return parseTree(body, 0)
	}
	return parseTree(body[len(mark):], len(mark))
}

func parseTree(body []byte, offset int) (*element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	above := []*element{{}} // the path to the element that is open, below a parent of all
	for {
		before := offset + int(decoder.InputOffset())
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return onlyChild(above[0])
		}
		if err != nil {
			return nil, err
		}
		inner := above[len(above)-1]
		switch token := token.(type) {
		case xml.StartElement:
			child := &element{name: token.Name.Local, start: offset + int(decoder.InputOffset())}
			inner.children = append(inner.children, child)
			above = append(above, child)
			if len(above) > maxDepth {
				return nil, errors.New("too many elements in each other")
			}
		case xml.EndElement:
			inner.end = before
			above = above[:len(above)-1]
		case xml.CharData:
			inner.text += string(token)
		case xml.Directive:
			return nil, errors.New("a document type is not allowed")
		}
	}
}

func onlyChild(top *element) (*element, error) {
	if len(top.children) != 1 {
		return nil, fmt.Errorf("there are %d root elements instead of 1", len(top.children))
	}
	if strings.TrimSpace(top.text) != "" {
		return nil, errors.New("there is text outside of the root element")
	}
	if err := top.children[0].checkText(); err != nil {
		return nil, err
	}
	return top.children[0], nil
}

// checkText refuses text beside elements.
func (e *element) checkText() error {
	if len(e.children) > 0 && strings.TrimSpace(e.text) != "" {
		return fmt.Errorf("element %s has text beside elements", e.name)
	}
	for _, child := range e.children {
		if err := child.checkText(); err != nil {
			return err
		}
	}
	return nil
}

// walk visits an element and all below it, in the order of the request.
func (e *element) walk(visit func(*element)) {
	visit(e)
	for _, child := range e.children {
		child.walk(visit)
	}
}
