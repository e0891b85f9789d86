package cloudshell

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

const detailsMethod = "GetReservationDetails"

// listing is an answer with two services, and its required contents.
func listing(body string) string {
	return `<?xml version="1.0" encoding="utf-8"?><Response CommandName="GetReservationDetails" Success="true" ` +
		`xmlns="` + namespace + `" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><ErrorCode>0</ErrorCode>` +
		`<ResponseInfo xsi:type="GetReservationDescriptionResponseInfo"><ReservationDescription Id="R" Status="Started">` + body +
		`</ReservationDescription></ResponseInfo></Response>`
}

const twoServices = `<Description>a &#x0; b</Description><Services><Service ServiceName="Mutex Service" Alias="MUTEX"><Attributes>` +
	`<Attribute Name="Mutex Owner" Value="OWNER"/></Attributes></Service><Service Alias="x"/></Services>`

func TestDecode(t *testing.T) {
	whole := listing(twoServices)
	for name, text := range map[string]string{
		"as it is":         whole,
		"byte order mark":  "\xef\xbb\xbf" + whole,
		"labelled utf-16":  strings.Replace(whole, "utf-8", "utf-16", 1),
		"no namespace":     strings.Replace(whole, ` xmlns="`+namespace+`"`, "", 1),
		"no declaration":   whole[strings.Index(whole, "<Response"):],
		"more elements":    strings.Replace(whole, "<Services>", "<Apps><App Name='y'/></Apps><Services>", 1),
		"success is 1":     strings.Replace(whole, `Success="true"`, `Success="1"`, 1),
		"forbidden number": strings.Replace(whole, "OWNER", "OWNER", 1) + "\n",
	} {
		r, err := decode(detailsMethod, []byte(text))
		require.NoError(t, err, name)
		services := r.Info.Details[0].Services
		require.Len(t, services, 2, name)
		require.Equal(t, "OWNER", services[0].Attributes[0].Value, name)
	}
}

// An incomplete or different answer must not decode: an empty list of services would mean that all
// locks are free.
func TestDecodeRefuses(t *testing.T) {
	whole := listing(twoServices)
	for n := range len(whole) {
		_, err := decode(detailsMethod, []byte(whole[:n]))
		require.Error(t, err, "cut off after %d bytes", n)
	}
	sixteen := []byte("\xff\xfe")
	for _, unit := range utf16.Encode([]rune(whole)) {
		sixteen = binary.LittleEndian.AppendUint16(sixteen, unit)
	}
	for name, text := range map[string]string{
		"nothing":           "",
		"a page":            "<html><body>Service Unavailable</body></html>",
		"another namespace": strings.Replace(whole, namespace, "urn:other", 1),
		"no success":        strings.Replace(whole, `Success="true"`, "", 1),
		"another command":   strings.Replace(whole, `CommandName="GetR`, `CommandName="SetR`, 1),
		"two roots":         whole + whole[strings.Index(whole, "<Response"):],
		"text behind":       whole + "and more",
		"an entity":         strings.Replace(strings.Replace(whole, "?>", `?><!DOCTYPE Response [<!ENTITY a "b">]>`, 1), "OWNER", "&a;", 1),
		"really utf-16":     string(sixteen),
		"unknown encoding":  strings.Replace(whole, "utf-8", "ebcdic", 1),
		"nul":               strings.Replace(whole, "OWNER", "OW\x00NER", 1),
	} {
		_, err := decode(detailsMethod, []byte(text))
		require.Error(t, err, name)
	}
}

// The memory for an answer is bounded by its size, whatever its contents.
func TestDecodeIsBounded(t *testing.T) {
	const size = 1 << 20
	for name, text := range map[string]string{
		"deep":      strings.Repeat("<a>", size/3),
		"attribute": `<Response Success="true" x="` + strings.Repeat("y", size) + `"/>`,
		"siblings":  `<Response Success="true">` + strings.Repeat("<a/>", size/4) + `</Response>`,
		"services":  listing("<Services>" + strings.Repeat("<Service/>", size/10) + "</Services>"),
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, _ = decode(detailsMethod, []byte(text))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(150*size), name)
	}
}

// FuzzDecode: no input makes it panic, and every accepted listing names its reservation.
func FuzzDecode(f *testing.F) {
	whole := listing(twoServices)
	for _, seed := range []string{
		whole, "\xef\xbb\xbf" + whole, whole[:len(whole)/2], strings.Replace(whole, "utf-8", "utf-16", 1), listing(""), listing("<Services/>"),
		strings.Replace(whole, namespace, "urn:other", 1), listing(strings.Repeat("<a>", 70)), `<Response Success="false"><Error>&#x0;</Error></Response>`,
		"&#0;&#xFFFFFFFF;&#99999999999;", "<!DOCTYPE a>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(detailsMethod, data)
		if err != nil {
			return
		}
		if r.XMLName.Local != "Response" || r.Success == "" {
			t.Fatalf("%q was taken for an answer", data)
		}
	})
}

func TestRequest(t *testing.T) {
	text := node("Add", leaf("a", `x & <y> "z"`), leaf("b", ""), node("attributes"), leaf("c", "é\x00☃"), node("services", leaf("string", "MUTEX")))
	require.Equal(t, `<Add><a>x &amp; &lt;y&gt; &#34;z&#34;</a><b /><attributes /><c>&#233;&#65533;&#9731;</c><services><string>MUTEX</string></services></Add>`, text)
	for _, r := range text {
		require.Less(t, r, rune(128))
	}
	require.Equal(t, "<Logoff />", node("Logoff"))
}
