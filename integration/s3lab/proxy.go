package s3lab

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/multilock/go/integration/engine"
)

// Proxy stands in front of a gateway.
type Proxy struct {
	Address string
	engine.Faults
	server string
	back   *http.Transport

	mu     sync.Mutex
	counts map[string]int
}

// NewProxy starts a proxy in front of a server.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	p := &Proxy{server: server, back: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, counts: map[string]int{}}
	front := httptest.NewUnstartedServer(p)
	front.Listener = p.Kept(front.Listener)
	front.Start()
	p.Address = front.Listener.Addr().String()
	t.Cleanup(func() {
		p.Break()
		front.Close()
		p.back.CloseIdleConnections()
	})
	return p
}

// Counts returns the requests so far, by method.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// ServeHTTP forwards a request, unless a fault is injected.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.mu.Lock()
	p.counts[r.Method]++
	p.mu.Unlock()
	switch p.Begin(r.Method) {
	case engine.Dropped:
		panic(http.ErrAbortHandler)
	case engine.Lost:
		_, _ = p.forward(r, body)
		panic(http.ErrAbortHandler)
	case engine.Zombie:
		p.Delay(func() { _, _ = p.forward(r, body) })
		panic(http.ErrAbortHandler)
	case engine.Broken:
		_, _ = p.forward(r, body)
		p.Break()
		panic(http.ErrAbortHandler)
	case engine.Torn:
		reply, err := p.forward(r, body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		reply.content = reply.content[:len(reply.content)/2]
		reply.write(w)
		panic(http.ErrAbortHandler)
	case engine.Repeated:
		_, _ = p.forward(r, body)
	}
	reply, err := p.forward(r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reply.write(w)
}

// reply is a complete reply.
type reply struct {
	*http.Response
	content []byte
}

// forward sends a request on. The Host header stays, because the signature covers it.
func (p *Proxy) forward(r *http.Request, body []byte) (reply, error) {
	out, err := http.NewRequest(r.Method, "http://"+p.server+r.URL.RequestURI(), bytes.NewReader(body)) //nolint:noctx // executed although the client has gone
	if err != nil {
		return reply{}, err
	}
	out.Host, out.Header = r.Host, r.Header.Clone()
	resp, err := p.back.RoundTrip(out)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return reply{resp, content}, err
}

func (r reply) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.Header)
	w.WriteHeader(r.StatusCode)
	_, _ = w.Write(r.content)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
