package cloudshell

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A value is the text in the owner's attribute: a kind and fields, in printable ASCII, readable for
// users of the portal:
//
//	ml1;held;c=./connect;h=exec3;n=5f0c...;p=4711;...
//
// The maximum length of an attribute is not documented: a value has at most 255 characters.
const (
	valueMark  = "ml1;"
	valueLimit = 255
	kindHeld   = "held"
	kindFree   = "free"
)

// The fields. Numbers are in base 36.
const (
	keyToken       = "n"
	keyReservation = "r" // the digest of the reservation's ID
	keyHost        = "h"
	keyBoot        = "b"
	keyNamespace   = "k"
	keyPID         = "p"
	keyStart       = "s"
	keyUser        = "u"
	keyCommand     = "c"
	keyTTL         = "l" // in milliseconds, like the next field
	keyHeartbeat   = "e"
	keyJob         = "j"
	keySign        = "t" // the last heartbeat by the server's clock, in milliseconds of Unix time
	keyTaken       = "w" // the time of the acquisition, likewise
)

type fields map[string]string

// readable undoes escapes that a value does not need.
var readable = strings.NewReplacer("&", ";", "%2F", "/", "%3A", ":", "%5B", "[", "%5D", "]", "%40", "@", "%2C", ",", "%27", "'", "%28", "(", "%29", ")")

// encodeValue encodes a value. Empty fields are left out.
func encodeValue(kind string, f fields) string {
	values := url.Values{}
	for key, text := range f {
		if text != "" {
			values.Set(key, text)
		}
	}
	return valueMark + kind + ";" + readable.Replace(values.Encode())
}

// parseValue decodes a value.
func parseValue(text string) (kind string, f fields, err error) {
	rest, ours := strings.CutPrefix(text, valueMark)
	kind, rest, whole := strings.Cut(rest, ";")
	if !ours || !whole {
		return "", nil, errors.New("its owner does not use multilock")
	}
	values, err := url.ParseQuery(strings.ReplaceAll(rest, ";", "&"))
	f = fields{}
	for key, texts := range values {
		if f[key] = texts[0]; len(texts) > 1 {
			err = errors.New("a field is there twice")
		}
	}
	if err != nil || f[keyReservation] == "" || kind != kindHeld && kind != kindFree {
		return "", nil, errors.New("its owner's value is damaged, or of an unknown kind")
	}
	return kind, f, nil
}

// held is the value of a held lock.
type held struct {
	record      source.Record
	reservation string
	sign, taken time.Time // sign is zero if the server's time was unknown
}

// encode encodes the record. The fields that identify the holder always fit; the command gets the
// remaining space.
func (h held) encode() string {
	r := h.record
	f := fields{
		keyToken: r.Token, keyReservation: h.reservation, keyUser: cut(r.Holder.User, 16), keyHost: cut(r.Holder.Host, 32),
		keyBoot: r.Holder.Boot, keyNamespace: r.Holder.Namespace, keyPID: number(int64(r.Holder.PID)), keyStart: number(int64(r.Holder.Start)), //nolint:gosec // a number of 64 bits
		keyTTL: number(r.TTL.Milliseconds()), keyHeartbeat: number(r.Heartbeat.Milliseconds()), keySign: fromTime(h.sign), keyTaken: fromTime(h.taken),
	}
	if r.Job {
		f[keyJob] = "1"
	}
	f[keyCommand] = cut(r.Holder.Command, valueLimit-len(encodeValue(kindHeld, f))-len(";c="))
	return encodeValue(kindHeld, f)
}

// parseHeld decodes the fields of encode.
func parseHeld(f fields) (held, error) {
	var wrong error
	number := func(key string) int64 {
		n, err := strconv.ParseInt(cmp.Or(f[key], "0"), 36, 64)
		wrong = errors.Join(wrong, err)
		return n
	}
	id := process.Identity{Host: f[keyHost], Boot: f[keyBoot], Namespace: f[keyNamespace], PID: int(number(keyPID)), Start: uint64(number(keyStart))} //nolint:gosec // as written by encode
	ttl, beat := number(keyTTL), number(keyHeartbeat)
	h := held{reservation: f[keyReservation], sign: toTime(number(keySign)), taken: toTime(number(keyTaken))}
	h.record = source.Record{Token: source.Printable(f[keyToken]), Prepared: h.taken, Claim: source.Claim{
		Holder: source.Holder{Identity: id, User: f[keyUser], Command: f[keyCommand]}.Printable(),
		TTL:    time.Duration(ttl) * time.Millisecond, Heartbeat: time.Duration(beat) * time.Millisecond, Job: f[keyJob] != "",
	}}
	if wrong != nil || f[keyPID] == "" || f[keyToken] == "" || id.Host == "" ||
		ttl <= 0 || ttl > source.MaxTTL.Milliseconds() || beat < 0 || beat > ttl {
		return held{}, errors.New("its owner's value is not a whole record")
	}
	return h, nil
}

func number(n int64) string { return strconv.FormatInt(n, 36) }

func fromTime(t time.Time) string { return number(max(t.UnixMilli(), 0)) }

func toTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// cut shortens a text to fit into room when it is escaped.
func cut(text string, room int) string {
	escaped := func(text string) int { return len(readable.Replace(url.QueryEscape(text))) }
	if len(text) <= room && escaped(text) <= room {
		return text
	}
	text = text[:max(min(len(text), room), 0)] // escaping never shortens a text
	for text != "" && escaped(text)+len("...") > room {
		text = text[:len(text)-1]
	}
	if text == "" {
		return ""
	}
	return strings.ToValidUTF8(text, "") + "..."
}

// newToken returns a short unique token for an acquisition.
func newToken() string { return strings.ReplaceAll(source.NewToken(), "-", "") }

// digestOf identifies a reservation in values: a sandbox from a blueprint that was saved while a
// lock was held starts with the services of another reservation.
func digestOf(reservation string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Trim(reservation, "{} "))))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}
