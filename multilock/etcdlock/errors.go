package etcdlock

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var errClosed = errors.New("the source was closed")

// told says that it was a server that has refused something.
func told(err error) bool { return errors.As(err, new(rpctypes.EtcdError)) }

// codeOf is what the server, or the way to it, said of a request.
func codeOf(err error) codes.Code {
	var refused rpctypes.EtcdError
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &refused):
		return refused.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return status.Code(err)
}

// inDoubt says that a request may have been carried out, may be later on, or was not sent: it
// is worth another try. What the server refused is none of that.
func inDoubt(err error) bool {
	if errors.Is(err, errClosed) || errors.Is(err, source.ErrInvalid) {
		return false
	}
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown, codes.Aborted:
		return true
	}
	return false
}

// misdialed says that a connection was made, and both ends do not speak of the same: TLS and
// none, or certificates that one of them does not take.
func (s *server) misdialed(err error) bool {
	if !s.unreachable(err) {
		return false
	}
	text := err.Error()
	stands := strings.Contains(text, "deadline") || strings.Contains(text, "timeout") // it does not speak at all, for now
	return !stands && remote.SaysOfTLS(text)
}

// leaseGone says that a lease has ended, or was never granted.
func leaseGone(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// OpError implements remote.Store, with what to do about it.
func (s *server) OpError(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	passing := inDoubt(err) && !s.misdialed(err) || errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, rpctypes.ErrNoSpace)
	return remote.OpError(ctx, source.OpError{Source: pkg, Op: op, Name: name, Err: err, Hint: s.hint(err), Passing: passing})
}

func (s *server) hint(err error) string {
	switch {
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrInvalidAuthToken):
		return "check the user and the password; a password belongs into the environment or a file"
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return "the user needs a role that may read and write all keys with the prefix " + s.at.prefix + "/"
	case errors.Is(err, rpctypes.ErrNoSpace):
		return "the store is full: compact and defragment it, then disarm its alarm (etcdctl alarm disarm)"
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return "it is more than etcd takes in one request (--max-request-bytes)"
	case s.misdialed(err):
		return remote.AdviceOnTLS(s.at.tls != nil, err.Error())
	case inDoubt(err):
		return "are its members running, most of them, and can this host reach them?"
	}
	return ""
}
