package etcdlock

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// wiretap sees what goes out and comes in. An error alone does not tell whether a request was
// sent, and the client sends some again that it takes for canceled.
type wiretap struct{ answered atomic.Bool }

// invoke has a request wait for a connection only where there was one before: the client's own
// way is to wait always, and to tell of nothing but the end of that time.
func (w *wiretap) invoke(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(w.answered.Load()))...)
}

type outKey struct{}

// watched is a context whose requests are counted once they are on their way.
func watched(ctx context.Context) (_ context.Context, out *atomic.Int32) {
	out = new(atomic.Int32)
	return context.WithValue(ctx, outKey{}, out), out
}

// HandleRPC implements stats.Handler.
func (w *wiretap) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch event.(type) {
	case *stats.OutHeader:
		if out, ok := ctx.Value(outKey{}).(*atomic.Int32); ok {
			out.Add(1)
		}
	case *stats.InHeader, *stats.InTrailer:
		w.answered.Store(true)
	}
}

// TagRPC implements stats.Handler.
func (w *wiretap) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (w *wiretap) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (w *wiretap) HandleConn(context.Context, stats.ConnStats) {}
