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
	"sync"
	"unicode/utf8"
)

// namespace is the XML namespace of all answers.
const namespace = "http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd"

// response is the envelope of every answer, with the results of this package's calls.
type response struct {
	XMLName xml.Name
	Command string `xml:"CommandName,attr"`
	Success string `xml:"Success,attr"`
	Error   string `xml:"Error"`
	Code    string `xml:"ErrorCode"`
	Info    struct {
		Token struct {
			Token string `xml:"Token,attr"`
		} `xml:"Token"`
		Details []struct {
			ID       string        `xml:"Id,attr"`
			Status   string        `xml:"Status,attr"`
			Services []serviceInfo `xml:"Services>Service"`
		} `xml:"ReservationDescription"`
		Models []serviceInfo `xml:"Services>Service"`
		Time   string        `xml:"ServerDateTime,attr"`
	} `xml:"ResponseInfo"`
}

// serviceInfo is a service of a reservation, or a service model, which has a Name.
type serviceInfo struct {
	Model      string `xml:"ServiceName,attr"`
	Alias      string `xml:"Alias,attr"`
	Name       string `xml:"Name,attr"`
	Attributes []struct {
		Name  string `xml:"Name,attr"`
		Value string `xml:"Value,attr"`
	} `xml:"Attributes>Attribute"`
}

// decode decodes an answer to method strictly, because a truncated answer, or another server's
// page, must not look like an empty reservation.
func decode(method string, body []byte) (*response, error) {
	decoder := xml.NewDecoder(bytes.NewReader(scrubReferences(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))))
	decoder.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "utf-16") {
			return input, nil // some answers declare it but are UTF-8; the decoder fails if one is not
		}
		return nil, fmt.Errorf("its encoding is %q", charset)
	}
	var r response
	err := decoder.Decode(&r)
	for err == nil {
		var token xml.Token
		if token, err = decoder.Token(); err == nil {
			if text, blank := token.(xml.CharData); !blank || len(bytes.TrimSpace(text)) > 0 {
				err = errors.New("there is trailing data")
			}
		}
	}
	switch space := r.XMLName.Space; {
	case !errors.Is(err, io.EOF) || r.XMLName.Local == "":
	case r.XMLName.Local != "Response" || space != namespace && space != "":
		err = fmt.Errorf("it is a %q of %q", r.XMLName.Local, space)
	case r.Success == "":
		err = errors.New("it lacks the result of the call")
	case r.Command != "" && !strings.EqualFold(r.Command, method):
		err = fmt.Errorf("it answers %q", r.Command)
	default:
		return &r, nil
	}
	return nil, fmt.Errorf("not the XML of an answer: %w", err)
}

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`&#(x[0-9a-fA-F]{1,8}|[0-9]{1,10});`) })

// scrubReferences replaces references to characters that XML does not allow. Servers send them, for
// instance in a description, and that must not hide the locks.
func scrubReferences(body []byte) []byte {
	return reference().ReplaceAllFunc(body, func(found []byte) []byte {
		digits, base := string(found[2:len(found)-1]), 10
		if digits[0] == 'x' {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseInt(digits, base, 64)
		known := n == '\t' || n == '\n' || n == '\r' || n >= ' ' && n < 0xd800 || n > 0xdfff && n < 0xfffe || n > 0xffff && n <= utf8.MaxRune
		if err != nil || !known {
			return []byte("\ufffd")
		}
		return found
	})
}

// leaf returns an XML element with text, in ASCII like the genuine clients. Characters that XML
// does not allow become the replacement character.
func leaf(name, text string) string {
	var escaped, ascii strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder does not fail
	for _, r := range escaped.String() {
		if r < utf8.RuneSelf {
			ascii.WriteRune(r)
		} else {
			fmt.Fprintf(&ascii, "&#%d;", r)
		}
	}
	return node(name, ascii.String())
}

// node returns an XML element with content.
func node(name string, content ...string) string {
	inner := strings.Join(content, "")
	if inner == "" {
		return "<" + name + " />"
	}
	return "<" + name + ">" + inner + "</" + name + ">"
}
