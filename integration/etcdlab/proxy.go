package etcdlab

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/multilock/go/integration/engine"
)

// Counts is the number of calls of each method.
type Counts map[string]int

// All returns the number of all requests.
func (c Counts) All() (n int) {
	for _, each := range c {
		n += each
	}
	return n
}

// Since returns what was added since an earlier count.
func (c Counts) Since(before Counts) Counts {
	diff := Counts{}
	for method, n := range c {
		if n -= before[method]; n > 0 {
			diff[method] = n
		}
	}
	return diff
}

// Proxy stands in front of a member. It sees which requests pass, but not their content.
type Proxy struct {
	testing.TB
	Address string
	// Latency delays each reply.
	Latency time.Duration
	engine.Faults
	back *grpc.ClientConn

	mu     sync.Mutex
	counts Counts
	hears  chan struct{} // open while watches are cut off; nil otherwise
}

// NewProxy starts a proxy in front of a server.
func NewProxy(t testing.TB, server string, latency time.Duration) *Proxy {
	t.Helper()
	p := &Proxy{TB: t, Latency: latency, counts: Counts{}}
	var err error
	p.back, err = grpc.NewClient("passthrough:///"+server, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.Address = listener.Addr().String()
	front := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(p.handle))
	go front.Serve(p.Kept(listener))
	t.Cleanup(func() {
		front.Stop()
		_ = p.back.Close()
	})
	return p
}

// Counts returns the requests so far. A watch is one request, however many events it reports.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Deafen breaks all connections, and lets no watch begin until hear is called.
func (p *Proxy) Deafen() (hear func()) {
	p.mu.Lock()
	hears := make(chan struct{})
	p.hears = hears
	p.mu.Unlock()
	p.Break()
	return func() { close(hears) }
}

func (p *Proxy) hearing(ctx context.Context) error {
	p.mu.Lock()
	hears := p.hears
	p.mu.Unlock()
	if hears == nil {
		return nil
	}
	select {
	case <-hears:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin counts a request and returns its outcome.
func (p *Proxy) begin(method string) engine.Outcome {
	p.count(method)
	return p.Begin(method)
}

func (p *Proxy) count(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[method]++
}

func (p *Proxy) handle(_ any, front grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(front)
	method := path.Base(full)
	told, _ := metadata.FromIncomingContext(front.Context())
	ctx := metadata.NewOutgoingContext(front.Context(), told)
	if method == "Watch" {
		if err := p.hearing(ctx); err != nil {
			return err
		}
		return p.pump(ctx, full, front)
	}
	var request frame
	if err := front.RecvMsg(&request); err != nil {
		return err
	}
	outcome := p.begin(method)
	pass := func(ctx context.Context) (answer frame, err error) {
		return answer, p.back.Invoke(ctx, full, &request, &answer)
	}
	lost := status.Error(codes.Unavailable, "the proxy has lost it")
	switch outcome {
	case engine.Dropped, engine.Cut, engine.Torn:
		return lost
	case engine.Hung:
		<-front.Context().Done()
		return lost
	case engine.Lost:
		_, _ = pass(context.WithoutCancel(ctx))
		return lost
	case engine.Denied:
		_, _ = pass(context.WithoutCancel(ctx))
		return status.Error(codes.Canceled, "the proxy says that it was canceled")
	case engine.Broken:
		_, _ = pass(context.WithoutCancel(ctx))
		p.Break()
		return lost
	case engine.Zombie:
		p.Delay(func() { _, _ = pass(context.WithoutCancel(ctx)) })
		return lost
	case engine.Done:
	}
	time.Sleep(p.Latency)
	answer, err := pass(ctx)
	if err != nil {
		return err
	}
	return front.SendMsg(&answer)
}

// pump forwards both directions of a stream. Its requests are counted, but meet no faults.
func (p *Proxy) pump(ctx context.Context, method string, front grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	back, err := p.back.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for {
			var f frame
			if front.RecvMsg(&f) != nil {
				return
			}
			p.count(path.Base(method))
			time.Sleep(p.Latency / 2)
			if back.SendMsg(&f) != nil {
				return
			}
		}
	}()
	for {
		var f frame
		if err := back.RecvMsg(&f); err != nil {
			return err
		}
		time.Sleep(p.Latency / 2)
		if err := front.SendMsg(&f); err != nil {
			return err
		}
	}
}

// frame is a message in encoded form.
type frame struct{ bytes []byte }

// raw is a codec that passes messages through unchanged.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return f.bytes, nil
}

func (raw) Unmarshal(data []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	f.bytes = append([]byte(nil), data...)
	return nil
}

func (raw) Name() string { return "proto" }
