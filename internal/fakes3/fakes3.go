// Package fakes3 is an object store in memory, for tests: the part of S3's protocol that locks use,
// with faults. It checks no signatures.
package fakes3

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's ETag
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Store is a bucket.
type Store struct {
	// Ignoring makes the store ignore conditions; Racy lets it check a condition, and write when another
	// write was allowed, too; Torn lets it replace the ETag of an object, and the object after a read.
	Ignoring, Racy, Torn bool

	putting        sync.Mutex // of a torn store
	mu             sync.Mutex
	objects        map[string]object
	late           []func()
	allowed, reads int // counts, for Racy and Torn
}

type object struct {
	body    []byte
	written time.Time
	etag    string
}

// New returns an empty store.
func New() *Store { return &Store{objects: map[string]object{}} }

// Outcome is what happens to a request.
type Outcome int

// The outcomes.
const (
	Answered Outcome = iota
	Dropped          // not carried out, and the connection is closed
	Lost             // carried out, and the connection is closed
	Late             // carried out by Land, and the connection is closed at once
	Repeated         // carried out twice, and the second answer is sent
	Busy             // 503, not carried out
	Conflict         // 409, not carried out
)

// Serve serves the store until the test ends, and returns HOST:PORT. fate decides what happens to
// each request; nil answers all.
func (s *Store) Serve(t testing.TB, fate func(*http.Request) Outcome) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		outcome := Answered
		if fate != nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			outcome = fate(r)
		}
		switch outcome {
		case Dropped:
			panic(http.ErrAbortHandler)
		case Late:
			s.mu.Lock()
			s.late = append(s.late, func() { s.Answer(httptest.NewRecorder(), r, body) })
			s.mu.Unlock()
			panic(http.ErrAbortHandler)
		case Lost:
			s.Answer(httptest.NewRecorder(), r, body)
			panic(http.ErrAbortHandler)
		case Repeated:
			s.Answer(httptest.NewRecorder(), r, body)
		case Busy:
			refuse(w, http.StatusServiceUnavailable, "SlowDown")
			return
		case Conflict:
			refuse(w, http.StatusConflict, "ConditionalRequestConflict")
			return
		case Answered:
		}
		s.Answer(w, r, body)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// Transport returns a client's transport to the store. It asks ask to carry out each request, which may
// fail instead, before or after that.
func (s *Store) Transport(ask func(kind, about string, changes bool, carryOut func() error) error) http.RoundTripper {
	return transport{s, ask}
}

type transport struct {
	store *Store
	ask   func(kind, about string, changes bool, carryOut func() error) error
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	var answer *httptest.ResponseRecorder
	err := t.ask(r.Method, r.URL.Path, r.Method != http.MethodGet, func() error {
		answer = httptest.NewRecorder()
		t.store.Answer(answer, r.Clone(context.Background()), body)
		return nil
	})
	if err == nil {
		err = r.Context().Err() // the answer came too late
	}
	if err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// Land carries out the requests that are late.
func (s *Store) Land() {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	for _, do := range late {
		do()
	}
}

// Put writes an object.
func (s *Store) Put(name, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = object{[]byte(body), time.Now(), etagOf([]byte(body))}
}

// Get returns the object of a key, or "" if the key has no object.
func (s *Store) Get(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.objects[name].body)
}

// Holder returns the token of the holder in a lock's object, "" if the lock is free or has no object.
func Holder(object string) (token string, err error) {
	var lock struct {
		Fields struct{ Lock struct{ Text string } }
	}
	if object == "" {
		return "", nil
	}
	if err := json.Unmarshal([]byte(object), &lock); err != nil || lock.Fields.Lock.Text == "" {
		return "", err
	}
	var record struct{ Token string }
	err = json.Unmarshal([]byte(lock.Fields.Lock.Text), &record)
	return record.Token, err
}

// Names returns the names of all objects, sorted.
func (s *Store) Names() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

func etagOf(body []byte) string {
	sum := md5.Sum(body) //nolint:gosec // S3's ETag
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// Answer carries out one request.
func (s *Store) Answer(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	_, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if s.Torn && r.Method == http.MethodPut {
		s.putting.Lock()
		defer s.putting.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, there := s.objects[name]
	switch {
	case name == "":
		s.list(w, r.URL.Query())
	case r.Method == http.MethodPut:
		if !s.allows(w, r, name) {
			return
		}
		if s.Racy {
			s.allowed++
			s.awaitAnother(&s.allowed)
		}
		if s.Torn && there {
			o.etag = etagOf(body)
			s.objects[name] = o
			s.awaitAnother(&s.reads)
		}
		s.objects[name] = object{body, time.Now(), etagOf(body)}
		w.Header().Set("ETag", etagOf(body))
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case !there:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		s.reads++
		w.Header().Set("ETag", o.etag)
		w.Header().Set("Last-Modified", o.written.UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", strconv.Itoa(len(o.body)))
		_, _ = w.Write(o.body)
	}
}

// awaitAnother waits until another request has raised the count, or for a second. The store answers
// meanwhile.
func (s *Store) awaitAnother(count *int) {
	for before, waited := *count, 0; *count == before && waited < 1000; waited++ {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
}

// allows reports whether a write's conditions hold, and answers it if not.
func (s *Store) allows(w http.ResponseWriter, r *http.Request, name string) bool {
	o, there := s.objects[name]
	match := r.Header.Get("If-Match")
	switch {
	case s.Ignoring:
	case r.Header.Get("If-None-Match") == "*" && there, match != "" && there && match != o.etag:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return false
	case match != "" && !there:
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return false
	}
	return true
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []content
}

type content struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
}

func (s *Store) list(w http.ResponseWriter, q url.Values) {
	most, err := strconv.Atoi(q.Get("max-keys"))
	if err != nil {
		most = 1000
	}
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	var names []string
	for name := range s.objects {
		if strings.HasPrefix(name, q.Get("prefix")) && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	all := listing{EncodingType: "url"}
	if len(names) > most {
		names = names[:most]
		all.IsTruncated, all.NextContinuationToken = true, names[most-1]
	}
	for _, name := range names {
		o := s.objects[name]
		all.Contents = append(all.Contents, content{url.QueryEscape(name), o.written.UTC().Format("2006-01-02T15:04:05.000Z"), o.etag, len(o.body)})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(all)
}
