package cloudshell

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// namespace is that of all answers.
const namespace = "http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd"

// maxDepth is how deep the elements of an answer may be nested. Those of a
// reservation's details are, in the schema, about a dozen deep.
const maxDepth = 64

// response is the envelope of every answer.
type response struct {
	XMLName xml.Name
	Command string `xml:"CommandName,attr"`
	Success string `xml:"Success,attr"`
	Error   string `xml:"Error"`
	Code    string `xml:"ErrorCode"`
	Info    []info `xml:"ResponseInfo"`
}

// info is what the calls that this package makes answer, all in one.
type info struct {
	XMLName  xml.Name
	Token    []tokenInfo   `xml:"Token"`
	Details  []details     `xml:"ReservationDescription"`
	Services []serviceList `xml:"Services"`
	Time     string        `xml:"ServerDateTime,attr"`
}

type tokenInfo struct {
	XMLName xml.Name
	Token   string `xml:"Token,attr"`
}

type details struct {
	XMLName  xml.Name
	ID       string        `xml:"Id,attr"`
	Status   string        `xml:"Status,attr"`
	Services []serviceList `xml:"Services"`
}

type serviceList struct {
	XMLName  xml.Name
	Services []serviceInfo `xml:"Service"`
}

// serviceInfo is a service of a reservation, or a model: those have a Name.
type serviceInfo struct {
	XMLName    xml.Name
	Model      string          `xml:"ServiceName,attr"`
	Alias      string          `xml:"Alias,attr"`
	Name       string          `xml:"Name,attr"`
	Attributes []attributeList `xml:"Attributes"`
}

type attributeList struct {
	XMLName    xml.Name
	Attributes []attributeInfo `xml:"Attribute"`
}

type attributeInfo struct {
	XMLName xml.Name
	Name    string `xml:"Name,attr"`
	Value   string `xml:"Value,attr"`
}

// decode reads the envelope of an answer to method. What is not wholly in order is
// an error: an answer that was cut off must not look like an empty reservation.
func decode(method string, body []byte) (*response, error) {
	body = scrubReferences(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if err := checkDepth(body); err != nil {
		return nil, err
	}
	decoder := newDecoder(body)
	var r response
	if err := decoder.Decode(&r); err != nil {
		return nil, fmt.Errorf("not the XML of an answer: %w", err)
	}
	if err := checkEnd(decoder); err != nil {
		return nil, err
	}
	return &r, r.check(method)
}

func newDecoder(body []byte) *xml.Decoder {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.CharsetReader = mislabelled
	return decoder
}

// mislabelled lets a text through that says it is UTF-16 and is not: such answers
// were recorded. One that really is does not get past the decoder.
func mislabelled(charset string, input io.Reader) (io.Reader, error) {
	if strings.EqualFold(charset, "utf-16") {
		return input, nil
	}
	return nil, fmt.Errorf("its encoding is %q", charset)
}

// checkDepth reads all tokens without remembering any, so that what Decode keeps
// is bounded by the size of the answer times a small factor.
func checkDepth(body []byte) error {
	decoder := newDecoder(body)
	for depth := 0; ; {
		token, err := decoder.RawToken()
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		case xml.Directive:
			return errors.New("not the XML of an answer: it has a document type")
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("not the XML of an answer: %w", err)
		case depth > maxDepth:
			return fmt.Errorf("not the XML of an answer: elements are nested more than %d deep", maxDepth)
		}
	}
}

// checkEnd makes sure that nothing follows the root element.
func checkEnd(decoder *xml.Decoder) error {
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("not the XML of an answer: %w", err)
		}
		if text, ok := token.(xml.CharData); !ok || len(bytes.TrimSpace(text)) > 0 {
			return errors.New("not the XML of an answer: something follows its end")
		}
	}
}

var reference = regexp.MustCompile(`&#(x[0-9a-fA-F]{1,8}|[0-9]{1,10});`)

// scrubReferences replaces references to characters that XML does not have. Such
// answers occur, and one of them in some description must not hide the locks.
func scrubReferences(body []byte) []byte {
	return reference.ReplaceAllFunc(body, func(found []byte) []byte {
		digits, base := string(found[2:len(found)-1]), 10
		if digits[0] == 'x' {
			digits, base = digits[1:], 16
		}
		number, err := strconv.ParseInt(digits, base, 64)
		if err != nil || number > utf8.MaxRune || !isXMLChar(rune(number)) {
			return []byte("\ufffd")
		}
		return found
	})
}

// check looks at the names: a page of another server is no answer.
func (r *response) check(method string) error {
	switch space := r.XMLName.Space; {
	case r.XMLName.Local != "Response" || space != namespace && space != "":
		return fmt.Errorf("not the XML of an answer: it is a %q of %q", r.XMLName.Local, space)
	case r.Success == "":
		return errors.New("not the XML of an answer: it does not say whether the call succeeded")
	case r.Command != "" && !strings.EqualFold(r.Command, method):
		return fmt.Errorf("not the XML of an answer: it answers %q", r.Command)
	case !r.oneNamespace():
		return errors.New("not the XML of an answer: its elements are of several namespaces")
	}
	return nil
}

// succeeded takes the spellings of an xs:boolean, in any case.
func (r *response) succeeded() bool { return strings.EqualFold(r.Success, "true") || r.Success == "1" }

// oneNamespace says whether all that was found is of the root's namespace.
func (r *response) oneNamespace() bool {
	names := []xml.Name{}
	for _, i := range r.Info {
		names = append(names, i.XMLName)
		for _, t := range i.Token {
			names = append(names, t.XMLName)
		}
		names = append(names, namesOf(i.Services)...)
		for _, d := range i.Details {
			names = append(append(names, d.XMLName), namesOf(d.Services)...)
		}
	}
	for _, name := range names {
		if name.Space != r.XMLName.Space {
			return false
		}
	}
	return true
}

func namesOf(lists []serviceList) (names []xml.Name) {
	for _, list := range lists {
		names = append(names, list.XMLName)
		for _, s := range list.Services {
			names = append(names, s.XMLName)
			for _, attributes := range s.Attributes {
				names = append(names, attributes.XMLName)
				for _, a := range attributes.Attributes {
					names = append(names, a.XMLName)
				}
			}
		}
	}
	return names
}

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
