package mongolab

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Outcome is what becomes of a command, and of its reply.
type Outcome int

// The outcomes.
const (
	// Answered: nothing goes wrong.
	Answered Outcome = iota
	// Dropped: the connection is closed, and the command is never carried out.
	Dropped
	// Lost: the command is carried out, and the connection is closed in place of a
	// reply.
	Lost
	// Zombie: the connection is closed, and the command is carried out afterwards,
	// when Before has ended: a packet that was stuck in the network.
	Zombie
	// Hung: the command is never carried out and never answered. The connection
	// stays open until the client has enough.
	Hung
	// Mute: as Hung, but the command is carried out.
	Mute
	// Refused: the command is not carried out, and the reply is the error Code.
	Refused
	// Misreported: the command is carried out, and the reply is the error Code.
	Misreported
	// Unconfirmed: the command is carried out and answered, and the answer says
	// writeConcernError Code.
	Unconfirmed
)

func (o Outcome) String() string {
	return [...]string{"answered", "dropped", "lost", "zombie", "hung", "mute", "refused", "misreported", "unconfirmed"}[o]
}

// executes says whether the command reaches the server.
func (o Outcome) executes() bool { return o != Dropped && o != Hung && o != Refused }

// Fault is what happens to one command. The zero value is no fault.
type Fault struct {
	Outcome Outcome
	// Code is the error of Refused, Misreported and Unconfirmed.
	Code Code
	// Before holds the command up before it is carried out, After the reply. Other
	// connections go on meanwhile. What the client does in that time changes nothing
	// for the command: a real server would not notice, either.
	Before, After Pause
}

// Pause returns when a command, or its reply, may go on. If ctx ends first, because
// the server was stopped or the connections were cut, the command does not go on.
type Pause func(ctx context.Context)

// For is a pause of a given length.
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

// Until is a pause until a channel is closed, or gives something.
func Until(c <-chan struct{}) Pause {
	return func(ctx context.Context) {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
}

// end waits for the end of the pause, and says whether the command goes on.
func (p Pause) end(ctx context.Context) bool {
	if p != nil {
		p(ctx)
	}
	return ctx.Err() == nil
}

// Injector decides what happens to a command. It is called by many goroutines, and
// should leave upkeep alone unless it means the whole server.
type Injector func(Command) Fault

// Nth is a fault of the n-th command of a name, from 0.
func Nth(name string, n int, f Fault) Injector {
	return func(c Command) Fault {
		if c.Name == name && c.Nth == n {
			return f
		}
		return Fault{}
	}
}

// Every is a fault of every command of a name.
func Every(name string, f Fault) Injector {
	return func(c Command) Fault {
		if c.Name == name && !c.Upkeep {
			return f
		}
		return Fault{}
	}
}

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
