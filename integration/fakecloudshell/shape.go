package fakecloudshell

import (
	"bytes"
	"regexp"
)

// Shape changes an answer's bytes. The answer is still delivered whole: its
// length is that of the changed bytes.
type Shape func([]byte) []byte

// Cut ends the document in the middle.
func Cut(answer []byte) []byte { return answer[:len(answer)/2] }

// Emptied leaves nothing of the answer.
func Emptied([]byte) []byte { return nil }

// Webpage is what a proxy, or a server that starts, may say instead.
func Webpage([]byte) []byte {
	return []byte("<!DOCTYPE html>\n<html><body><p>Please try again later.<br></body></html>\n")
}

// WithMark puts a byte order mark before the document, which is allowed.
func WithMark(answer []byte) []byte { return append([]byte(mark), answer...) }

// LabelledUTF16 says utf-16 and sends UTF-8, as a recorded answer does.
func LabelledUTF16(answer []byte) []byte {
	return bytes.Replace(answer, []byte(`encoding="utf-8"`), []byte(`encoding="utf-16"`), 1)
}

// WithNull has a reference to a character that XML forbids, which the real server
// has been seen to send, in every attribute Description.
func WithNull(answer []byte) []byte {
	return bytes.ReplaceAll(answer, []byte(` Description="`), []byte(` Description="&#x0;`))
}

// Sparse leaves out what may be left out: empty lists, and values that are empty.
func Sparse(answer []byte) []byte {
	answer = regexp.MustCompile(`<[A-Za-z]+></[A-Za-z]+>`).ReplaceAll(answer, nil)
	return bytes.ReplaceAll(answer, []byte(` Value=""`), nil)
}

// SuccessAsDigit writes true and false as 1 and 0, which the schema allows, and which
// the Python clients take for failures.
func SuccessAsDigit(answer []byte) []byte {
	answer = bytes.Replace(answer, []byte(` Success="true"`), []byte(` Success="1"`), 1)
	return bytes.Replace(answer, []byte(` Success="false"`), []byte(` Success="0"`), 1)
}

// WithoutError is a failure that does not say why.
func WithoutError(answer []byte) []byte {
	return regexp.MustCompile(`(?s)<Error>.*</Error>`).ReplaceAll(answer, nil)
}

// Padded puts spaces between the start of the document and what it says.
func Padded(size int) Shape {
	return func(answer []byte) []byte {
		start := bytes.Index(answer, []byte("<ErrorCode"))
		if start < 0 {
			start = len(answer)
		}
		return bytes.Join([][]byte{answer[:start], answer[start:]}, bytes.Repeat([]byte(" "), size))
	}
}

// FailedCommand is the failure of a command that ran: no Error, code 0.
func FailedCommand(answer []byte) []byte {
	answer = regexp.MustCompile(`Success="[a-z]*"`).ReplaceAll(answer, []byte(`Success="false"`))
	content := regexp.MustCompile(`(?s)(<Response [^>]*>).*</Response>`)
	return content.ReplaceAll(answer, []byte(`${1}<ErrorCode>0</ErrorCode><ResponseInfo xsi:type="CommandExecutionFailedResultInfo">`+
		`<ErrorName>Failed</ErrorName><ErrorDescription>The command failed</ErrorDescription></ResponseInfo></Response>`))
}
