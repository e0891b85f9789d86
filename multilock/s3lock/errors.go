package s3lock

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// statusOf returns the HTTP status of the store's answer, 0 without an answer.
func statusOf(err error) int {
	var refused minio.ErrorResponse
	if errors.As(err, &refused) {
		return refused.StatusCode
	}
	return 0
}

func codeOf(err error) string {
	var refused minio.ErrorResponse
	errors.As(err, &refused)
	return refused.Code
}

// isAbsent reports whether there is no such object.
func isAbsent(err error) bool {
	return statusOf(err) == http.StatusNotFound && codeOf(err) != minio.NoSuchBucket
}

// isConflict reports whether a conditional write was not carried out: the object is not what was
// expected, or another write was in progress.
func isConflict(err error) bool {
	code := statusOf(err)
	return code == http.StatusPreconditionFailed || code == http.StatusConflict || isAbsent(err)
}

// isUnsent reports whether there was no connection for the request.
func isUnsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// inDoubt reports whether a write may have been carried out, or may still be.
func inDoubt(err error) bool {
	if err == nil || isUnsent(err) || isFinal(err) {
		return false
	}
	switch code := statusOf(err); code {
	case 0, http.StatusRequestTimeout:
		return true
	case http.StatusServiceUnavailable:
		return codeOf(err) != "SlowDown"
	default:
		return code >= http.StatusInternalServerError
	}
}

// isFinal reports whether the error comes from this side: no request was sent, or another one fails
// as well.
func isFinal(err error) bool {
	return errors.Is(err, source.ErrInvalid) || errors.Is(err, errForeign) || errors.Is(err, errUnfit) || remote.SaysOfTLS(err.Error())
}

// passes reports whether another try makes sense.
func passes(err error) bool {
	if err == nil || isFinal(err) {
		return false
	}
	code := statusOf(err)
	return code == 0 || code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusPreconditionFailed
}

// OpError implements remote.Store. It adds a hint.
func (s *server) OpError(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	return remote.OpError(ctx, source.OpError{Source: pkg, Op: op, Name: name, Err: err, Hint: s.hint(err), Passing: passes(err)})
}

func (s *server) hint(err error) string {
	switch code := codeOf(err); {
	case errors.Is(err, errUnfit):
		return "use a store that carries out If-None-Match and If-Match atomically; docs/s3.md names some"
	case code == minio.NoSuchBucket:
		return "create the bucket, or correct its name or region"
	case code == "AccessDenied":
		return "the user or role needs s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject on " + s.at.bucket + "/" + s.at.prefix + "*; without credentials requests are anonymous"
	case code == "InvalidAccessKeyId", code == "SignatureDoesNotMatch", code == "ExpiredToken", code == "InvalidToken":
		return "check the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile that AWS_PROFILE names, or the instance's role"
	case code == "RequestTimeTooSkewed":
		return "this host's clock is wrong: stores accept a difference of 15 minutes"
	case code == "AuthorizationHeaderMalformed", code == "PermanentRedirect":
		return "the bucket is in another region: correct region= in the URL"
	case statusOf(err) == http.StatusNotImplemented:
		return "the store does not support conditional writes"
	case remote.SaysOfTLS(err.Error()):
		return remote.TLSWords{Off: "add tls=false to the URL", Authority: "cafile=FILE", Name: "correct the endpoint", Client: "a proxy", All: "tls and cafile"}.Advice(err.Error())
	case passes(err):
		return "is the store running, and can this host reach " + s.at.endpoint + "?"
	}
	return ""
}
