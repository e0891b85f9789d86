package fakecloudshell

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

const (
	pathPrefix = "/ResourceManagerApiService/"
	maxRequest = 1 << 20 // bytes; the largest one here is a few hundred
)

// refusal is the answer to what is not a call at all. What the real server says
// then is not known; no genuine client gets there.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// incoming is a request as it was understood.
type incoming struct {
	method    Method
	signature signature
	args      arguments
	token     string
	dates     string // a layout of package time
	public    string // the body without secrets
	refusal   *refusal
	failure   *Failure // it is a call, but not one that can be carried out
}

// understand reads a request to its end.
func (s *Server) understand(r *http.Request) incoming {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	in := incoming{token: parseAuthorization(r.Header.Get("Authorization"))["token"], dates: layout(r.Header.Get("DateTimeFormat"))}
	root, parseErr := parseElement(body)
	in.public = redactBody(body, root)
	switch {
	case err != nil:
		in.refusal = refuse(http.StatusBadRequest, "the body ends too early: %v", err)
	case len(body) > maxRequest:
		in.refusal = refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxRequest)
	default:
		in.refusal = checkEnvelope(r)
	}
	if in.refusal != nil {
		return in
	}
	in.method = s.methodOf(r.URL.Path)
	if parseErr != nil {
		in.refusal = refuse(http.StatusBadRequest, "the body is not well-formed: %v", parseErr)
		return in
	}
	if root.name != string(in.method) {
		in.refusal = refuse(http.StatusBadRequest, "the root element is %s instead of %s", root.name, in.method)
		return in
	}
	s.interpret(&in, root)
	return in
}

// interpret finds what is to be called, and with what.
func (s *Server) interpret(in *incoming, root *element) {
	found, known := s.methods[in.method]
	if !known {
		in.failure = &s.world.failures.UnknownMethod
		return
	}
	var err error
	in.signature = found
	if in.args, err = bind(root, found.parameters); err != nil {
		in.failure = invalid(err)
	}
}

// methodOf is the method that a path names, in any case of letters.
func (s *Server) methodOf(path string) Method {
	name := path[len(pathPrefix):]
	for method := range s.methods {
		if strings.EqualFold(string(method), name) {
			return method
		}
	}
	return Method(name)
}

// checkEnvelope checks what the documents call mandatory about a request.
func checkEnvelope(r *http.Request) *refusal {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(r.URL.Path) < len(pathPrefix) || !strings.EqualFold(r.URL.Path[:len(pathPrefix)], pathPrefix):
		return refuse(http.StatusNotFound, "%s is not below %s", r.URL.Path, pathPrefix)
	case r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, "the method is %s instead of POST", r.Method)
	case r.ContentLength < 0:
		return refuse(http.StatusLengthRequired, "there is no Content-Length")
	case err != nil || media != "text/xml":
		return refuse(http.StatusUnsupportedMediaType, "Content-Type is %q instead of text/xml", r.Header.Get("Content-Type"))
	}
	for _, name := range []string{"ClientTimeZoneId", "DateTimeFormat"} {
		if r.Header.Get(name) == "" {
			return refuse(http.StatusBadRequest, "the header %s is missing", name)
		}
	}
	return nil
}

// publicHeader is a header without secrets.
func publicHeader(header http.Header) http.Header {
	public := header.Clone()
	for i, value := range public["Authorization"] {
		public["Authorization"][i] = redactAuthorization(value)
	}
	return public
}
