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

// maxElements is how many there may be: what is kept of an element is ten times as large as the
// smallest of them. Those of a reservation are longer, and fewer in the largest answer.
const maxElements = 1_000_000

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
	Token []struct {
		Token string `xml:"Token,attr"`
	} `xml:"Token"`
	Details []details     `xml:"ReservationDescription"`
	Models  []serviceInfo `xml:"Services>Service"`
	Time    string        `xml:"ServerDateTime,attr"`
}

type details struct {
	ID       string        `xml:"Id,attr"`
	Status   string        `xml:"Status,attr"`
	Services []serviceInfo `xml:"Services>Service"`
}

// serviceInfo is a service of a reservation, or a model: those have a Name.
type serviceInfo struct {
	Model      string `xml:"ServiceName,attr"`
	Alias      string `xml:"Alias,attr"`
	Name       string `xml:"Name,attr"`
	Attributes []struct {
		Name  string `xml:"Name,attr"`
		Value string `xml:"Value,attr"`
	} `xml:"Attributes>Attribute"`
}

// decode reads the envelope of an answer to method. What is not wholly in order is
// an error: an answer that was cut off must not look like an empty reservation.
func decode(method string, body []byte) (*response, error) {
	body = scrubReferences(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	raw := xml.NewDecoder(bytes.NewReader(body))
	raw.CharsetReader = mislabelled
	decoder := xml.NewTokenDecoder(&checkedTokens{Decoder: raw})
	var r response
	err := decoder.Decode(&r)
	for err == nil {
		_, err = decoder.Token() // the end
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not the XML of an answer: %w", err)
	}
	return &r, r.check(method)
}

// checkedTokens are those of an answer, as long as it is like the API's. It is checked
// as it is read, so what it costs is bounded by its size times a small factor.
type checkedTokens struct {
	*xml.Decoder
	root     xml.Name // none before it
	depth    int
	elements int
}

// Token implements xml.TokenReader.
func (c *checkedTokens) Token() (xml.Token, error) {
	token, err := c.Decoder.Token()
	if err != nil {
		return nil, err
	}
	ended := c.depth == 0 && c.root.Local != ""
	switch token := token.(type) {
	case xml.StartElement:
		if c.root.Local == "" {
			c.root = token.Name
		}
		c.depth, c.elements = c.depth+1, c.elements+1
		err = c.checkElement(token.Name)
	case xml.EndElement:
		c.depth--
	case xml.CharData:
		ended = ended && len(bytes.TrimSpace(token)) > 0
	case xml.Directive:
		err = errors.New("it has a document type")
	}
	if ended {
		err = errors.New("something follows its end")
	}
	if err != nil {
		return nil, err // the decoder would go on with a token
	}
	return token, nil
}

func (c *checkedTokens) checkElement(name xml.Name) error {
	if c.depth > maxDepth || c.elements > maxElements {
		return fmt.Errorf("it has more than %d elements, or they are nested more than %d deep", maxElements, maxDepth)
	}
	switch name.Local {
	case "ResponseInfo", "Token", "ReservationDescription", "Services", "Service", "Attributes", "Attribute":
		if name.Space != c.root.Space {
			return errors.New("its elements are of several namespaces")
		}
	}
	return nil
}

// mislabelled lets a text through that says it is UTF-16 and is not: such answers
// were recorded. One that really is does not get past the decoder.
func mislabelled(charset string, input io.Reader) (io.Reader, error) {
	if strings.EqualFold(charset, "utf-16") {
		return input, nil
	}
	return nil, fmt.Errorf("its encoding is %q", charset)
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
	}
	return nil
}

// succeeded takes the spellings of an xs:boolean, in any case.
func (r *response) succeeded() bool { return strings.EqualFold(r.Success, "true") || r.Success == "1" }

// leaf is a piece of XML to be sent that has text in it.
func leaf(name, text string) string { return node(name, escapeText(text)) }

// node is one that has other pieces in it. XML is written as the genuine clients do:
// in ASCII, without a declaration, namespaces or white space between elements.
func node(name string, content ...string) string {
	inner := strings.Join(content, "")
	if inner == "" {
		return "<" + name + " />"
	}
	return "<" + name + ">" + inner + "</" + name + ">"
}

// escapeText escapes what XML or ASCII has no character for. What XML cannot even
// name becomes the replacement character.
func escapeText(text string) string {
	var b strings.Builder
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
			fmt.Fprintf(&b, "&#%d;", utf8.RuneError)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return b.String()
}

// isXMLChar is the production Char of XML 1.0.
func isXMLChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}
