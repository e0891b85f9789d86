package cloudshell

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// The fields of a lock's record. Numbers are to the base 36.
const (
	keyHost      = "h"
	keyPID       = "p"
	keyUser      = "u"
	keyCommand   = "c"
	keyTTL       = "l" // milliseconds, as the next
	keyHeartbeat = "e"
	keyMachine   = "m"
	keyBoot      = "b"
	keyBootID    = "B" // a boot id that is a UUID, in base 64
	keyNamespace = "k"
	keyStart     = "s"
	keyJob       = "j"
	keySign      = "t" // the last sign of life by the server's clock, in milliseconds of Unix time
	keyTaken     = "w" // when the lock was taken, in seconds of it
)

// What people read is cut, the command to what is left.
const (
	maxHost = 32
	maxUser = 16
)

// held is what the value of a turn says that somebody holds.
type held struct {
	record source.Record
	brand  string
	result string
	sign   time.Time // zero if the holder knew no server's clock
	taken  time.Time
}

// encode writes the record, and cuts what people read until it fits.
func (h held) encode() string {
	r := h.record
	r.Holder.Host, r.Holder.User = cut(r.Holder.Host, maxHost), cut(r.Holder.User, maxUser)
	without := r.Holder.Command
	r.Holder.Command = ""
	room := valueLimit - len(encodeValue(kindHeld, h.fields(r))) - len(";c=")
	r.Holder.Command = cut(without, room)
	return encodeValue(kindHeld, h.fields(r))
}

func (h held) fields(r source.Record) []field {
	fields := []field{
		{keyNonce, r.Token}, {keyUser, r.Holder.User}, {keyCommand, r.Holder.Command}, {keyBrand, h.brand}, {keyResult, h.result},
		{keyTTL, number(r.TTL.Milliseconds())}, {keyHeartbeat, number(r.Heartbeat.Milliseconds())}, {keySign, number(milliseconds(h.sign))}, {keyTaken, number(milliseconds(h.taken) / 1000)},
	}
	if r.Job {
		fields = append(fields, field{keyJob, "1"})
	}
	r.Holder.Machine = "" // there is no room for it, and the boot says more
	return append(fields, identityFields(r.Holder.Identity)...)
}

func identityFields(id process.Identity) []field {
	return []field{
		{keyHost, id.Host}, {keyPID, strconv.Itoa(id.PID)}, {keyMachine, id.Machine}, {keyNamespace, id.Namespace},
		{keyStart, strconv.FormatUint(id.Start, 36)}, bootField(id.Boot),
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 36)
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// bootField saves the room that a UUID's digits take.
func bootField(boot string) field {
	if id, err := uuid.Parse(boot); err == nil && id.String() == boot {
		return field{keyBootID, base64.RawURLEncoding.EncodeToString(id[:])}
	}
	return field{keyBoot, boot}
}

// cut keeps as much of a text as fits into room when it is escaped.
func cut(text string, room int) string {
	if len(text) <= room && len(escape(text)) <= room {
		return text
	}
	text = text[:max(min(len(text), room), 0)] // escaping makes nothing shorter
	for len(text) > 0 && len(escape(text))+len("...") > room {
		text = text[:len(text)-1]
	}
	if text == "" {
		return ""
	}
	return strings.ToValidUTF8(text, "") + "..."
}

// parseHeld reads a record. The error says what is wrong with it.
func parseHeld(v value) (held, error) {
	if v.kind != kindHeld {
		return held{}, errors.New("its owner's value is of an unknown kind")
	}
	n := numbers{fields: v.fields}
	ttl, beat := n.get(keyTTL), n.get(keyHeartbeat)
	sign, taken := moment(n.get(keySign)), moment(1000*n.get(keyTaken))
	id, err := parseIdentity(v.fields)
	if err = errors.Join(err, n.err); err != nil || v.fields[keyNonce] == "" || v.fields[keyBrand] == "" ||
		ttl <= 0 || ttl > source.MaxTTL.Milliseconds() || beat < 0 || beat > ttl {
		return held{}, errors.New("its owner's value is not a whole record")
	}
	r := source.Record{Token: source.Printable(v.fields[keyNonce]), Prepared: taken, Claim: source.Claim{
		Holder: source.Holder{Identity: id, User: v.fields[keyUser], Command: v.fields[keyCommand]}.Printable(),
		TTL:    time.Duration(ttl) * time.Millisecond, Heartbeat: time.Duration(beat) * time.Millisecond, Job: v.fields[keyJob] != "",
	}}
	return held{record: r, brand: v.fields[keyBrand], result: v.fields[keyResult], sign: sign, taken: taken}, nil
}

// numbers reads fields, and remembers what went wrong.
type numbers struct {
	fields map[string]string
	err    error
}

func (n *numbers) get(key string) int64 {
	text := n.fields[key]
	if text == "" {
		return 0
	}
	value, err := strconv.ParseInt(text, 36, 64)
	n.err = errors.Join(n.err, err)
	return value
}

func parseIdentity(fields map[string]string) (process.Identity, error) {
	id := process.Identity{
		Host: fields[keyHost], Machine: fields[keyMachine], Boot: fields[keyBoot], Namespace: fields[keyNamespace],
	}
	var err, bad error
	id.PID, err = strconv.Atoi(fields[keyPID])
	id.Start, bad = strconv.ParseUint(fields[keyStart], 36, 64)
	if id.Host == "" {
		err = errors.New("there is no host")
	}
	if boot, err := base64.RawURLEncoding.DecodeString(fields[keyBootID]); err == nil && len(boot) == 16 {
		id.Boot = uuid.UUID(boot).String()
	}
	return id, errors.Join(err, bad)
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// newToken names one acquisition, or one value, in little room.
func newToken() string { return strings.ReplaceAll(source.NewToken(), "-", "") }

// newResultID tells the results of one name apart: 60 bits are plenty.
func newResultID() string { return strings.ToLower(rand.Text()[:12]) }

// A value is what a service of ours has in the owner's attribute: words and
// fields, in printable ASCII, so that people can read it in the portal:
//
//	ml1;held;n=5f0c...;h=exec3;p=4711;...
//
// How long an attribute may be is not documented. Ours stay within 255 characters.
const (
	valueMark  = "ml1"
	valueLimit = 255
)

// The kinds of values.
const (
	kindHeld   = "held"
	kindFree   = "free"
	kindList   = "list"
	kindResult = "result"
)

// field is one key and what it says.
type field struct{ key, text string }

// encodeValue writes a value. Empty fields are left out.
func encodeValue(kind string, fields []field) string {
	var b strings.Builder
	b.WriteString(valueMark + ";" + kind)
	for _, f := range fields {
		if f.text != "" {
			b.WriteString(";" + f.key + "=" + escape(f.text))
		}
	}
	return b.String()
}

// escape writes what is not plain ASCII as a URL's query does, and leaves more of
// the rest readable than package url.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ':
			b.WriteByte('+')
		case c <= ' ' || c > '~' || strings.IndexByte(`;%+=&<>"'`, c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// value is a value that was read.
type value struct {
	kind   string
	fields map[string]string
}

var errForeignValue = errors.New("its owner does not use multilock")

// parseValue reads a value of ours.
func parseValue(text string) (value, error) {
	words := strings.Split(text, ";")
	if words[0] != valueMark || len(words) < 2 {
		return value{}, errForeignValue
	}
	v := value{kind: words[1], fields: map[string]string{}}
	for _, word := range words[2:] {
		key, escaped, found := strings.Cut(word, "=")
		text, err := url.QueryUnescape(escaped)
		if _, twice := v.fields[key]; !found || err != nil || twice {
			return value{}, errors.New("its owner's value is damaged")
		}
		v.fields[key] = text
	}
	return v, nil
}

// brand tells reservations apart: a sandbox that was saved as a blueprint while
// something was locked begins with services that belong to another reservation.
func brand(reservation string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Trim(reservation, "{} "))))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// The fields of more than one kind of value.
const (
	keyNonce  = "n" // an acquisition's token, or what makes a value unique
	keyBrand  = "r"
	keyResult = "x" // the id of the last committed result
)
