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

// response is the envelope of every answer, with what the calls of this package return.
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

// serviceInfo is a service of a reservation, or a service model: that has a Name.
type serviceInfo struct {
	Model      string `xml:"ServiceName,attr"`
	Alias      string `xml:"Alias,attr"`
	Name       string `xml:"Name,attr"`
	Attributes []struct {
		Name  string `xml:"Name,attr"`
		Value string `xml:"Value,attr"`
	} `xml:"Attributes>Attribute"`
}

// decode reads an answer to method. What is not wholly in order is an error: an answer
// that was cut off, or another server's page, must not look like an empty reservation.
func decode(method string, body []byte) (*response, error) {
	decoder := xml.NewDecoder(bytes.NewReader(scrubReferences(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))))
	decoder.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "utf-16") {
			return input, nil // some answers say so and are not; the decoder stops at one that is
		}
		return nil, fmt.Errorf("its encoding is %q", charset)
	}
	var r response
	err := decoder.Decode(&r)
	for err == nil {
		var token xml.Token
		if token, err = decoder.Token(); err == nil {
			if text, blank := token.(xml.CharData); !blank || len(bytes.TrimSpace(text)) > 0 {
				err = errors.New("something follows its end")
			}
		}
	}
	switch space := r.XMLName.Space; {
	case !errors.Is(err, io.EOF) || r.XMLName.Local == "":
	case r.XMLName.Local != "Response" || space != namespace && space != "":
		err = fmt.Errorf("it is a %q of %q", r.XMLName.Local, space)
	case r.Success == "":
		err = errors.New("it does not say whether the call succeeded")
	case r.Command != "" && !strings.EqualFold(r.Command, method):
		err = fmt.Errorf("it answers %q", r.Command)
	default:
		return &r, nil
	}
	return nil, fmt.Errorf("not the XML of an answer: %w", err)
}

var reference = regexp.MustCompile(`&#(x[0-9a-fA-F]{1,8}|[0-9]{1,10});`)

// scrubReferences replaces references to characters that XML does not have. Such answers
// occur, and one of them in some description must not hide the locks.
func scrubReferences(body []byte) []byte {
	return reference.ReplaceAllFunc(body, func(found []byte) []byte {
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

// leaf is an XML element with text, in ASCII, as the genuine clients write it. What XML
// cannot say becomes the replacement character.
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

// node is an XML element with others in it.
func node(name string, content ...string) string {
	inner := strings.Join(content, "")
	if inner == "" {
		return "<" + name + " />"
	}
	return "<" + name + ">" + inner + "</" + name + ">"
}
