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

// isServerError reports whether an error is the server's own.
func isServerError(err error) bool { return errors.As(err, new(rpctypes.EtcdError)) }

// codeOf returns the status code of a request's error.
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

// inDoubt reports whether a request may have taken effect, may do so later, or was not sent:
// another try makes sense. It is false if the server rejected the request.
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

// mismatchesTLS reports whether a connection was made, but the TLS settings of client and server do
// not match: only one uses TLS, or a certificate was rejected.
func (s *server) mismatchesTLS(err error) bool {
	if !s.unreachable(err) {
		return false
	}
	text := err.Error()
	stands := strings.Contains(text, "deadline") || strings.Contains(text, "timeout") // no reply at all, possibly for now
	return !stands && remote.SaysOfTLS(text)
}

// leaseGone reports whether a lease has ended, or was never granted.
func leaseGone(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// OpError implements remote.Store. It adds a hint.
func (s *server) OpError(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	passing := inDoubt(err) && !s.mismatchesTLS(err) || errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, rpctypes.ErrNoSpace)
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
	case s.mismatchesTLS(err):
		return remote.AdviceOnTLS(s.at.tls != nil, err.Error())
	case inDoubt(err):
		return "are its members running, most of them, and can this host reach them?"
	}
	return ""
}
