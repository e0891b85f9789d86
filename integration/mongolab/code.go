package mongolab

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Code is the number of an error of MongoDB. Names and numbers are those of
// src/mongo/base/error_codes.yml of the server.
type Code int32

// Errors of a server that stops, that is not the primary or not any more, and of a
// write that too few nodes have confirmed in time.
const (
	// WriteConcernFailed is what wtimeout ends with: the write took place, and may
	// yet be rolled back. Since MongoDB 8.1 it is called WriteConcernTimeout.
	WriteConcernFailed Code = 64
	// ShutdownInProgress: the server is being stopped.
	ShutdownInProgress Code = 91
	// PrimarySteppedDown: the primary steps down.
	PrimarySteppedDown Code = 189
	// TransactionTooOld: the session has gone on since this write.
	TransactionTooOld Code = 225
	// NotWritablePrimary: the node is a secondary.
	NotWritablePrimary Code = 10107
	// InterruptedDueToReplStateChange: the command was ended because the primary
	// steps down.
	InterruptedDueToReplStateChange Code = 11602
)

func (c Code) String() string {
	switch c {
	case WriteConcernFailed:
		return "WriteConcernFailed"
	case ShutdownInProgress:
		return "ShutdownInProgress"
	case PrimarySteppedDown:
		return "PrimarySteppedDown"
	case TransactionTooOld:
		return "TransactionTooOld"
	case NotWritablePrimary:
		return "NotWritablePrimary"
	case InterruptedDueToReplStateChange:
		return "InterruptedDueToReplStateChange"
	}
	return fmt.Sprintf("Location%d", int32(c)) // as the server calls what has no name
}

// repeatable says whether a server tells the driver to repeat a write that ended
// with this error.
func (c Code) repeatable() bool {
	switch c {
	case ShutdownInProgress, PrimarySteppedDown, NotWritablePrimary, InterruptedDueToReplStateChange:
		return true
	}
	return false
}

// labels are what a server adds to an error of this command.
func (c Code) labels(command Command) bson.D {
	if !c.repeatable() || command.TxnNumber == 0 {
		return nil
	}
	return bson.D{{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}}}
}

func (c Code) description() bson.D {
	return bson.D{
		{Key: "code", Value: int32(c)},
		{Key: "codeName", Value: c.String()},
		{Key: "errmsg", Value: "from the proxy of the test: " + c.String()},
	}
}

// refusal is the reply to a command that ended with this error.
func (c Code) refusal(command Command) (bson.Raw, error) {
	reply := append(bson.D{{Key: "ok", Value: 0.0}}, c.description()...)
	return bson.Marshal(append(reply, c.labels(command)...))
}

// unconfirmed is the reply to a write that took place, but was not confirmed.
func (c Code) unconfirmed(command Command, reply bson.Raw) (bson.Raw, error) {
	var elements bson.D
	if err := bson.Unmarshal(reply, &elements); err != nil {
		return nil, err
	}
	elements = append(elements, bson.E{Key: "writeConcernError", Value: c.description()})
	return bson.Marshal(append(elements, c.labels(command)...))
}
