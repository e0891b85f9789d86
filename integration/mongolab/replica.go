package mongolab

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// setName is the name of the imitated replica set.
const setName = "mongolab"

// asPrimary turns a reply to hello into that of the primary of a replica set with one node. The driver
// then retries writes.
func asPrimary(hello bson.Raw, address string) (bson.Raw, error) {
	var elements bson.D
	if err := bson.Unmarshal(hello, &elements); err != nil {
		return nil, err
	}
	return bson.Marshal(append(elements,
		bson.E{Key: "setName", Value: setName},
		bson.E{Key: "setVersion", Value: int32(1)},
		bson.E{Key: "secondary", Value: false},
		bson.E{Key: "hosts", Value: bson.A{address}},
		bson.E{Key: "me", Value: address},
		bson.E{Key: "primary", Value: address},
	))
}

// repetitions recognises a write that a driver retries because it does not know the result of the first
// attempt. Like a server, it remembers the last write of each session.
type repetitions struct {
	sessions map[string]written
}

type written struct {
	txnNumber int64
	reply     bson.Raw // nil if the write changed nothing, or is not known to have changed anything
}

func newRepetitions() *repetitions { return &repetitions{sessions: map[string]written{}} }

// lastWrite returns the last known write of the command's session before this one.
func (r *repetitions) lastWrite(c Command) written {
	last := r.sessions[c.Session]
	if c.TxnNumber > last.txnNumber {
		r.sessions[c.Session] = written{txnNumber: c.TxnNumber}
	}
	return last
}

// remember keeps the reply to an executed write. A write that failed changed nothing, so a retry is
// executed.
func (r *repetitions) remember(c Command, reply bson.Raw) {
	if c.TxnNumber != 0 && succeeded(reply) {
		r.sessions[c.Session] = written{txnNumber: c.TxnNumber, reply: reply}
	}
}

func succeeded(reply bson.Raw) bool {
	ok, _ := reply.Lookup("ok").AsInt64OK()
	_, err := reply.LookupErr("writeErrors")
	return ok == 1 && err != nil
}

// executeOnce executes a write unless it was executed before. A write that is older than the last write
// of its session is rejected, because its client no longer waits for a reply.
func (s *Server) executeOnce(c *conn, x *Exchange, request message) (bson.Raw, error) {
	last := s.repetitions.lastWrite(x.Command)
	switch {
	case x.TxnNumber == 0 || x.TxnNumber > last.txnNumber:
	case x.TxnNumber < last.txnNumber:
		return s.refuse(x, TransactionTooOld)
	case last.reply != nil:
		s.journal.note(x, func(x *Exchange) { x.Repeated, x.Reply = true, last.reply })
		return last.reply, nil
	}
	reply, err := s.forward(c, x, request)
	if err == nil {
		s.repetitions.remember(x.Command, reply)
	}
	if err != nil || !isHello(x.Name) {
		return reply, err
	}
	return asPrimary(reply, s.listener.Addr().String())
}

func (s *Server) refuse(x *Exchange, code Code) (bson.Raw, error) {
	reply, err := code.refusal(x.Command)
	s.journal.note(x, func(x *Exchange) { x.Reply = reply })
	return reply, err
}
