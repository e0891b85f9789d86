package pglab

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
)

// Proxy stands in front of a server. A request is everything that a client sends before it waits for a
// reply; the proxy does not look at the content. Connecting meets no faults, and is counted separately.
type Proxy struct {
	testing.TB
	Address string
	// Latency delays each reply.
	Latency time.Duration
	server  atomic.Value

	engine.Faults
	requests, connections atomic.Int64
}

// NewProxy starts a proxy in front of a server.
func NewProxy(t testing.TB, server string, latency time.Duration) *Proxy {
	t.Helper()
	p := &Proxy{TB: t, Latency: latency}
	p.server.Store(server)
	listener, err := net.Listen("tcp", engine.Free(t, engine.OwnHost()))
	require.NoError(t, err)
	p.Address = listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		p.Break()
	})
	return p
}

// Redirect sends new connections to another server.
func (p *Proxy) Redirect(server string) { p.server.Store(server) }

// Requests returns the number of requests so far.
func (p *Proxy) Requests() int { return int(p.requests.Load()) }

// Connections returns the number of connections so far.
func (p *Proxy) Connections() int { return int(p.connections.Load()) }

// begin counts a request and returns its outcome.
func (p *Proxy) begin() engine.Outcome {
	p.requests.Add(1)
	return p.Begin("")
}

// link is a client's connection and the proxy's connection to the server.
type link struct {
	*Proxy
	client, server net.Conn
	requests       chan []byte
	answers        chan message
}

// message is a message of the protocol in encoded form.
type message struct {
	kind  byte
	bytes []byte
}

const (
	ready     = 'Z'
	terminate = 'X'
)

func (p *Proxy) serve(client net.Conn) {
	drop := p.Keep(client)
	defer drop()
	server, err := net.Dial("tcp", p.server.Load().(string))
	if err != nil {
		return
	}
	l := &link{Proxy: p, client: client, server: server, requests: make(chan []byte), answers: make(chan message, 1000)}
	in := bufio.NewReader(client)
	first, err := l.greet(in)
	if err != nil || !first {
		_ = server.Close()
		return
	}
	p.connections.Add(1)
	go l.readRequests(in)
	go l.readAnswers()
	if !l.pass() {
		_ = server.Close()
	}
}

// greet forwards a client's startup message, which has no type byte. It reports false for a request to
// cancel a statement, which gets no reply.
func (l *link) greet(in *bufio.Reader) (begins bool, err error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(in, head); err != nil {
		return false, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(head)-8)
	if _, err := io.ReadFull(in, rest); err != nil {
		return false, err
	}
	const cancel = 80877102
	_, err = l.server.Write(append(head, rest...))
	return binary.BigEndian.Uint32(head[4:]) != cancel, err
}

func read(in *bufio.Reader) (m message, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(in, head); err != nil {
		return m, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err = io.ReadFull(in, body)
	return message{head[0], append(head, body...)}, err
}

// readRequests collects messages until the client waits for a reply, and treats them as one request.
func (l *link) readRequests(in *bufio.Reader) {
	defer close(l.requests)
	var gathered []byte
	for {
		m, err := read(in)
		if err != nil {
			return
		}
		gathered = append(gathered, m.bytes...)
		switch m.kind {
		case 'S', 'Q', 'p', terminate:
			l.requests <- gathered
			gathered = nil
		}
	}
}

func (l *link) readAnswers() {
	defer close(l.answers)
	in := bufio.NewReader(l.server)
	for {
		m, err := read(in)
		if err != nil {
			return
		}
		l.answers <- m
	}
}

// pass forwards both directions. It reports whether the connection to the server was taken over by a
// delayed request.
func (l *link) pass() (taken bool) {
	connected := false // before the server's first ReadyForQuery the connection is still authenticating
	for {
		select {
		case m, open := <-l.answers:
			if !open {
				return false
			}
			if !connected {
				connected = m.kind == ready
			} else if l.Latency > 0 {
				time.Sleep(l.Latency / 2) // a message that the server sends on its own
			}
			if _, err := l.client.Write(m.bytes); err != nil {
				return false
			}
		case request, open := <-l.requests:
			if !open || request[0] == terminate {
				_, _ = l.server.Write(request)
				return false
			}
			if !connected {
				_, _ = l.server.Write(request)
				continue
			}
			if again, taken := l.carryOut(request, l.begin()); !again {
				return taken
			}
		}
	}
}

// carryOut applies an outcome to a request. again reports whether the connection is still usable.
func (l *link) carryOut(request []byte, fate engine.Outcome) (again, taken bool) {
	switch fate {
	case engine.Dropped, engine.Denied:
	case engine.Hung:
		for range l.requests { // until the client gives up
		}
	case engine.Cut:
		_, _ = l.server.Write(request[:len(request)/2])
	case engine.Zombie:
		l.Delay(func() {
			_, _ = l.server.Write(request)
			l.collect()
			_ = l.server.Close()
		})
		return false, true
	case engine.Lost, engine.Broken, engine.Torn:
		_, _ = l.server.Write(request)
		answer := l.collect()
		if fate == engine.Torn {
			_, _ = l.client.Write(answer[:len(answer)/2])
		}
		if fate == engine.Broken {
			l.Break()
		}
	case engine.Done:
		time.Sleep(l.Latency)
		_, _ = l.server.Write(request)
		answer := l.collect()
		_, err := l.client.Write(answer)
		return err == nil, false
	}
	return false, false
}

// collect returns the reply to a request, including asynchronous messages of the server.
func (l *link) collect() (answer []byte) {
	for m := range l.answers {
		answer = append(answer, m.bytes...)
		if m.kind == ready {
			break
		}
	}
	return answer
}
