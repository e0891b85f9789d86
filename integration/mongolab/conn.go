package mongolab

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// conn is a client's connection, and the connection to the server behind it.
type conn struct {
	server  *Server
	client  net.Conn
	backend net.Conn
	cancel  context.CancelFunc
	// requests are the client's messages. It is closed when the client disconnects or is cut off.
	requests chan message
	ended    chan struct{} // closed when no requests are read any more
}

// cut closes the connection to the client and ends any pause. A command that the server is executing
// finishes first.
func (c *conn) cut() {
	c.cancel()
	_ = c.client.Close()
}

// serve forwards commands, one at a time, until the connection ends.
func (c *conn) serve(ctx context.Context) {
	defer c.cut()
	defer func() { _ = c.backend.Close() }()
	defer close(c.ended)
	go c.receive()
	for request := range c.requests {
		if !c.handle(ctx, request.single()) {
			return
		}
	}
}

// receive reads one message ahead, so it notices that the client has disconnected while the client's
// command is delayed.
func (c *conn) receive() {
	defer close(c.requests)
	for {
		m, err := readMessage(c.client)
		if err != nil {
			return
		}
		select {
		case c.requests <- m:
		case <-c.ended:
			return
		}
	}
}

// handle processes one request and reports whether the connection stays open.
func (c *conn) handle(ctx context.Context, request message) bool {
	command, err := parseCommand(request)
	if err != nil {
		c.server.journal.reject(err)
		return false
	}
	x, fault := c.server.journal.begin(command)
	if fault.Outcome == Zombie {
		_ = c.client.Close()
	}
	reply, err := c.obtain(ctx, x, request, fault)
	if err != nil {
		c.server.journal.note(x, func(x *Exchange) { x.Err = err })
		return false
	}
	return c.answer(x.Command, request, fault, reply)
}

// obtain executes the command, if its fault allows that, and returns the server's reply.
func (c *conn) obtain(ctx context.Context, x *Exchange, request message, fault Fault) (bson.Raw, error) {
	travel := For(c.server.options.Latency / 2)
	if !travel.end(ctx) || !fault.Before.end(ctx) {
		return nil, context.Cause(ctx)
	}
	var reply bson.Raw
	if fault.Outcome.executes() {
		var err error
		if reply, err = c.server.execute(c, x, request); err != nil {
			return nil, err
		}
	}
	if !fault.After.end(ctx) || !travel.end(ctx) {
		return nil, context.Cause(ctx)
	}
	return reply, nil
}

// answer sends the reply as the fault dictates, and reports whether the connection stays open.
func (c *conn) answer(command Command, request message, fault Fault, reply bson.Raw) bool {
	switch fault.Outcome {
	case Dropped, Lost, Zombie:
		return false
	case Hung, Mute:
		<-c.requests // until the client disconnects
		return false
	}
	if request.unanswered() {
		return true
	}
	reply, err := fault.reported(command, reply)
	if err != nil {
		return false
	}
	_, err = c.client.Write(replyTo(request, reply))
	return err == nil
}

// reported returns the reply that the client gets.
func (f Fault) reported(command Command, reply bson.Raw) (bson.Raw, error) {
	switch f.Outcome {
	case Refused, Misreported:
		return f.Code.refusal(command)
	case Unconfirmed:
		return f.Code.unconfirmed(command, reply)
	default:
		return reply, nil
	}
}

// errUnanswered rejects writes without a reply: the proxy cannot execute them one at a time, because it
// does not know when they are done.
var errUnanswered = errors.New("a write without acknowledgement (w:0): the embedded server takes none")

// roundTrip sends a request to the server behind the proxy and returns its reply, nil if the request
// expects no reply.
func (c *conn) roundTrip(request message) (bson.Raw, error) {
	if _, err := c.backend.Write(request); err != nil {
		return nil, fmt.Errorf("to the server: %w", err)
	}
	if request.unanswered() {
		return nil, nil
	}
	m, err := readMessage(c.backend)
	if err != nil {
		return nil, fmt.Errorf("from the server: %w", err)
	}
	return m.document()
}
