package etcdlock

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// rpcHook observes requests and replies. An error alone does not show whether a request was sent,
// and the client retries some requests that it considers canceled.
type rpcHook struct{ answered atomic.Bool }

// invoke lets a request wait for a connection only if there was one before: by default the client
// would always wait, and then report only the timeout.
func (h *rpcHook) invoke(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(h.answered.Load()))...)
}

type outKey struct{}

// watched returns a context that counts its requests once they are sent.
func watched(ctx context.Context) (_ context.Context, out *atomic.Int32) {
	out = new(atomic.Int32)
	return context.WithValue(ctx, outKey{}, out), out
}

// HandleRPC implements stats.Handler.
func (h *rpcHook) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch event.(type) {
	case *stats.OutHeader:
		if out, ok := ctx.Value(outKey{}).(*atomic.Int32); ok {
			out.Add(1)
		}
	case *stats.InHeader, *stats.InTrailer:
		h.answered.Store(true)
	}
}

// TagRPC implements stats.Handler.
func (h *rpcHook) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (h *rpcHook) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (h *rpcHook) HandleConn(context.Context, stats.ConnStats) {}
