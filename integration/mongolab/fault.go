package mongolab

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Outcome is what happens to a command and its reply.
type Outcome int

// The outcomes.
const (
	// Answered: no fault.
	Answered Outcome = iota
	// Dropped: the connection is closed, and the command is never executed.
	Dropped
	// Lost: the command is executed, and the connection is closed instead of a reply.
	Lost
	// Zombie: the connection is closed, and the command is executed after Before has ended, like a
	// packet that was stuck in the network.
	Zombie
	// Hung: the command is never executed and never answered. The connection stays open until the
	// client gives up.
	Hung
	// Mute: like Hung, but the command is executed.
	Mute
	// Refused: the command is not executed, and the reply is the error Code.
	Refused
	// Misreported: the command is executed, and the reply is the error Code.
	Misreported
	// Unconfirmed: the command is executed, and its reply has writeConcernError Code.
	Unconfirmed
)

func (o Outcome) String() string {
	return [...]string{"answered", "dropped", "lost", "zombie", "hung", "mute", "refused", "misreported", "unconfirmed"}[o]
}

// executes reports whether the command reaches the server.
func (o Outcome) executes() bool { return o != Dropped && o != Hung && o != Refused }

// Fault is what happens to one command. The zero value is no fault.
type Fault struct {
	Outcome Outcome
	// Code is the error of Refused, Misreported and Unconfirmed.
	Code Code
	// Before delays the execution, After the reply. Other connections are not delayed. A client that
	// gives up meanwhile does not stop the command: a real server would not notice, either.
	Before, After Pause
}

// Pause returns when a command or its reply may continue. If ctx ends first, because the server was
// stopped or the connections were cut, the command is abandoned.
type Pause func(ctx context.Context)

// For returns a pause of this length.
func For(d time.Duration) Pause {
	return func(ctx context.Context) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// Until returns a pause that lasts until the channel is closed or receives a value.
func Until(c <-chan struct{}) Pause {
	return func(ctx context.Context) {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
}

// end waits for the end of the pause and reports whether the command may continue.
func (p Pause) end(ctx context.Context) bool {
	if p != nil {
		p(ctx)
	}
	return ctx.Err() == nil
}

// Injector decides what happens to a command. It is called concurrently. It should leave upkeep alone,
// unless the whole server is meant to fail.
type Injector func(Command) Fault

// Nth returns a fault of the n-th command with this name, counted from 0.
func Nth(name string, n int, f Fault) Injector {
	return func(c Command) Fault {
		if c.Name == name && c.Nth == n {
			return f
		}
		return Fault{}
	}
}

// Every returns a fault of every command with this name.
func Every(name string, f Fault) Injector {
	return func(c Command) Fault {
		if c.Name == name && !c.Upkeep {
			return f
		}
		return Fault{}
	}
}

// Code is a MongoDB error code. Names and numbers are from src/mongo/base/error_codes.yml of the
// server.
type Code int32

// Errors of a server that is stopping or is not the primary, and of a write that too few nodes
// confirmed in time.
const (
	// WriteConcernFailed is the error after wtimeout: the write took place, and may still be rolled
	// back. Since MongoDB 8.1 it is called WriteConcernTimeout.
	WriteConcernFailed Code = 64
	// ShutdownInProgress: the server is stopping.
	ShutdownInProgress Code = 91
	// PrimarySteppedDown: the primary is stepping down.
	PrimarySteppedDown Code = 189
	// TransactionTooOld: the session has made newer writes.
	TransactionTooOld Code = 225
	// NotWritablePrimary: the node is a secondary.
	NotWritablePrimary Code = 10107
	// InterruptedDueToReplStateChange: the command was interrupted because the primary is stepping
	// down.
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
	return fmt.Sprintf("Location%d", int32(c)) // the server's notation for codes without a name
}

// repeatable reports whether a server asks the driver to retry a write that failed with this error.
func (c Code) repeatable() bool {
	switch c {
	case ShutdownInProgress, PrimarySteppedDown, NotWritablePrimary, InterruptedDueToReplStateChange:
		return true
	}
	return false
}

// labels returns the error labels that a server adds to a command's error.
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

// refusal returns the reply to a command that failed with this error.
func (c Code) refusal(command Command) (bson.Raw, error) {
	reply := append(bson.D{{Key: "ok", Value: 0.0}}, c.description()...)
	return bson.Marshal(append(reply, c.labels(command)...))
}

// unconfirmed returns the reply to a write that took place but was not confirmed.
func (c Code) unconfirmed(command Command, reply bson.Raw) (bson.Raw, error) {
	var elements bson.D
	if err := bson.Unmarshal(reply, &elements); err != nil {
		return nil, err
	}
	elements = append(elements, bson.E{Key: "writeConcernError", Value: c.description()})
	return bson.Marshal(append(elements, c.labels(command)...))
}
