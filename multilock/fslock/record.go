package fslock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// maxRecord bounds how much of a lock file is read. Our lock files are below 8 KiB.
const maxRecord = 64 << 10

// recordVersion is the version of the second line's format. A reader rejects later versions.
const recordVersion = 1

// wire is the second line of a lock file.
type wire struct {
	Version int    `json:"v"`
	Token   string `json:"token"`
	Group   string `json:"group"`
	Name    string `json:"name"`
	source.Holder
	TTL       int64     `json:"ttl_ms"`
	Heartbeat int64     `json:"heartbeat_ms,omitempty"`
	Job       bool      `json:"job,omitempty"`
	KeyDigest string    `json:"key_digest,omitempty"` // of the job's key
	Prepared  time.Time `json:"prepared"`
}

// encodeRecord returns the bytes of a lock file: "HOST PID" as the Python MultiLock writes it, and a line
// of JSON. Times are in UTC in all files: hosts may be in different zones, and UTC needs no zone file to
// read.
func encodeRecord(group string, r source.Record) ([]byte, error) {
	r.Holder = r.Holder.Bounded()
	line, err := json.Marshal(wire{
		Version: recordVersion, Token: r.Token, Group: group, Name: r.Name, Holder: r.Holder,
		TTL: r.TTL.Milliseconds(), Heartbeat: r.Heartbeat.Milliseconds(), Job: r.Job, KeyDigest: r.KeyDigest, Prepared: r.Prepared.UTC(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the lock's record: %w", err)
	}
	head := oneWord(r.Holder.Host) + " " + strconv.Itoa(r.Holder.PID) + "\n"
	return append(append([]byte(head), line...), '\n'), nil
}

// oneWord is a host's name in the form that the first line can hold: a kernel accepts any bytes in a
// hostname, but a reader splits the line at white space.
func oneWord(host string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, host)
}

// ParseRecord reads the bytes of a lock file. It never fails: an unreadable record becomes a record with
// Foreign set, held by an unknown process.
func ParseRecord(name string, data []byte) source.Record {
	record, err := parseRecord(data)
	if err != nil {
		record = source.Record{Foreign: err.Error()}
	}
	record.Name = name
	return record
}

// strange is why a record cannot be parsed, and what is known of it all the same.
type strange struct {
	why string
	// ours means that the file is empty, or begins like a record of ours: a version of multilock wrote it,
	// or was about to, and its holder touches the directory while it lives.
	ours bool
	// ttl is the TTL that the record shows, zero if it shows none.
	ttl time.Duration
}

func (s *strange) Error() string { return s.why }

// strangenessOf returns what is known of a lock file that parseRecord cannot parse.
func strangenessOf(data []byte) strange {
	var s *strange
	if _, err := parseRecord(data); errors.As(err, &s) {
		return *s
	}
	return strange{}
}

func parseRecord(data []byte) (source.Record, error) {
	if len(data) > maxRecord {
		return source.Record{}, errors.New("the lock file is larger than any that multilock writes")
	}
	if len(bytes.Trim(data, "\x00")) == 0 {
		return source.Record{}, errEmptyRecord
	}
	head, body, _ := bytes.Cut(data, []byte("\n"))
	host, pid, err := parseHead(head)
	if err != nil {
		return source.Record{}, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return peerRecord(host, pid), nil
	}
	return parseBody(body)
}

// errEmptyRecord has a variable of its own because a crash of the machine leaves an empty file.
var errEmptyRecord = &strange{why: "the lock file is empty", ours: true}

func parseHead(head []byte) (host string, pid int, err error) {
	fields := strings.Fields(string(head))
	if len(fields) != 2 {
		return "", 0, errors.New("the lock file does not begin with a host and a pid")
	}
	pid, err = strconv.Atoi(fields[1])
	if err != nil {
		return "", 0, errors.New("the lock file does not begin with a host and a pid")
	}
	return source.Printable(fields[0]), pid, nil
}

// peerRecord is the record of a Python MultiLock: no token, no TTL.
func peerRecord(host string, pid int) source.Record {
	var r source.Record
	r.Holder.Host, r.Holder.PID = host, pid
	return r
}

func parseBody(body []byte) (source.Record, error) {
	var w wire
	err := json.Unmarshal(body, &w)
	ttl, beat := time.Duration(w.TTL)*time.Millisecond, time.Duration(w.Heartbeat)*time.Millisecond
	why := ""
	switch version := shownIn(body, "v"); {
	case version != 0 && version != recordVersion:
		why = fmt.Sprintf("the lock file has format %g, this multilock knows %d", version, recordVersion)
	case err != nil || version == 0:
		why = "the lock file's second line is not a record of multilock"
	case w.Token == "" || w.Host == "":
		why = "the lock file's record lacks its token or host"
	case w.TTL <= 0 || w.TTL > source.MaxTTL.Milliseconds() || w.Heartbeat < 0 || w.Heartbeat > w.TTL:
		why = "the lock file's record has an impossible ttl"
	}
	if why != "" {
		shown := min(max(shownIn(body, "ttl_ms"), 0), float64(source.MaxTTL.Milliseconds()))
		return source.Record{}, &strange{why: why, ours: true, ttl: time.Duration(shown) * time.Millisecond}
	}
	return source.Record{
		Token:    source.Printable(w.Token),
		Claim:    source.Claim{Holder: w.Printable(), TTL: ttl, Heartbeat: beat, Job: w.Job, KeyDigest: w.KeyDigest},
		Prepared: w.Prepared,
	}, nil
}

// shownIn returns a number from a record whose other fields may have any type, zero if it is missing.
func shownIn(body []byte, key string) float64 {
	var fields map[string]any
	_ = json.Unmarshal(body, &fields) // without valid JSON, the fields stay empty
	number, _ := fields[key].(float64)
	return number
}

// typicalRecord is larger than most lock files.
const typicalRecord = 2 << 10

// readFile appends the rest of a file to data, up to one byte more than most in all.
func readFile(f vfs.File, data []byte, most int) ([]byte, error) {
	if data == nil {
		data = make([]byte, 0, typicalRecord)
	}
	for len(data) <= most {
		data = slices.Grow(data, 1)
		n, err := f.Read(data[len(data):min(cap(data), most+1)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}
