package mongolock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// Error codes of the server
// (https://www.mongodb.com/docs/manual/reference/error-codes/).
const (
	codeUnauthorized     = 13
	codeAuthentication   = 18
	codeInvalidNamespace = 73
	codeValidation       = 121
	codeNotPrimary       = 10107
	codeReadOnlyView     = 166
)

// inDoubt reports whether a write may have taken effect, may do so later, or may be rolled back. It
// does unless the server rejected the statement itself, or the statement was never sent.
func inDoubt(err error) bool {
	switch {
	case err == nil, unsent(err), errors.Is(err, mongo.ErrNoDocuments), errors.Is(err, source.ErrInvalid):
		return false
	}
	var written mongo.WriteException
	if errors.As(err, &written) {
		return written.WriteConcernError != nil || len(written.WriteErrors) == 0 || interrupted(written)
	}
	var command mongo.CommandError
	if errors.As(err, &command) {
		return !definite(command)
	}
	return true
}

// definite recognises commands that were rejected before they changed anything, and errors of
// findAndModify's statement, which come as the command's.
func definite(err mongo.CommandError) bool {
	if err.Code == 0 || interrupted(err) || err.HasErrorLabel("NetworkError") {
		return false
	}
	return mongo.IsDuplicateKeyError(err) || isUnauthorized(err) || !err.HasErrorLabel("RetryableWriteError")
}

// interrupted recognises the errors of a server whose state changed in the middle of a command, and
// of a command whose time was over. A server that is not the primary has surely changed nothing;
// but its reply may be to a retry by the driver, so that the outcome of the first attempt is
// unknown.
func interrupted(err mongo.ServerError) bool {
	const (
		hostUnreachable, hostNotFound, networkTimeout, maxTime    = 6, 7, 89, 50
		shutdown, writeConcern, steppedDown, exceededTime         = 91, 64, 189, 262
		socketException, replicaChange, shutdownNow, notPrimaryOr = 9001, 11602, 11600, 13436
		unsatisfiable, interruptedCode, clientDisconnect, tooOld  = 100, 11601, 279, 225
		betweenServers                                            = 202
	)
	for _, code := range []int{
		hostUnreachable, hostNotFound, networkTimeout, maxTime, shutdown, writeConcern, steppedDown, exceededTime,
		socketException, replicaChange, shutdownNow, notPrimaryOr, unsatisfiable, interruptedCode, clientDisconnect, tooOld,
		betweenServers, codeNotPrimary,
	} {
		if err.HasErrorCode(code) {
			return true
		}
	}
	return false
}

// unsent reports that no server was found to send a command to. (If a retry finds none, the driver
// returns the error of the first attempt.)
func unsent(err error) bool {
	var none topology.ServerSelectionError
	return errors.As(err, &none) || errors.Is(err, mongo.ErrClientDisconnected)
}

// isUnauthorized reports that the user lacks a privilege.
func isUnauthorized(err error) bool {
	var told mongo.ServerError
	return errors.As(err, &told) && told.HasErrorCode(codeUnauthorized)
}

// taken reports that a document with that _id exists. A duplicate in another unique index does not
// count, and means nothing for the lock.
func taken(err error) bool {
	if !mongo.IsDuplicateKeyError(err) {
		return false
	}
	text := err.Error()
	return !strings.Contains(text, "index: ") || strings.Contains(text, "index: _id_")
}

// opError names the step that failed, and adds a hint.
func (s *server) opError(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	return remote.OpError(ctx, source.OpError{Source: pkg, Op: op, Name: name, Err: describeHosts(err), Hint: s.hint(err)})
}

// describeHosts rewrites a server selection error for users: the hosts, and the error of each.
func describeHosts(err error) error {
	var none topology.ServerSelectionError
	if errors.As(err, new(*remote.Unreachable)) || !errors.As(err, &none) {
		return err
	}
	var hosts []string
	for _, server := range none.Desc.Servers {
		why := "it is not the primary"
		if server.LastError != nil {
			why = server.LastError.Error()
		}
		hosts = append(hosts, fmt.Sprintf("%s: %s", server.Addr, why))
	}
	if len(hosts) == 0 {
		hosts = []string{"no host is known"}
	}
	return &remote.Unreachable{Ways: strings.Join(hosts, "; "), Err: err}
}

func (s *server) hint(err error) string {
	var told mongo.ServerError
	coded := errors.As(err, &told)
	has := func(code int) bool { return coded && told.HasErrorCode(code) }
	switch {
	case strings.Contains(err.Error(), "auth error"), has(codeAuthentication):
		return "check the user, the password and authSource; a password belongs into the environment or a file"
	case has(codeUnauthorized):
		return "the user needs the role readWrite on the database " + s.database.Name()
	case unsent(err):
		return "is the server running, and can this host reach it? a replica set also needs a primary"
	case has(codeValidation):
		return "the collection has a validator that does not accept locks; choose another collection"
	case has(codeReadOnlyView), has(codeInvalidNamespace):
		return "choose a plain collection"
	case mongo.IsDuplicateKeyError(err):
		return "the collection has a unique index besides that of _id; choose another collection"
	case mongo.IsTimeout(err):
		return "the server, or the majority of its replica set, did not answer within " + s.timeout.String()
	}
	return ""
}
