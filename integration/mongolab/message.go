package mongolab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

const (
	headerLength = 16
	// flagsOffset is where the flags of an OP_MSG are.
	flagsOffset = headerLength
	// maxMessage is maxMessageSizeBytes of mongod, with some room for the header.
	maxMessage = 48_000_000 + 16<<10
)

// errTruncated says that a message ends before its content does.
var errTruncated = errors.New("the message is shorter than its content")

// message is one message of the MongoDB wire protocol, byte for byte.
type message []byte

// readMessage reads the next message. The error is io.EOF if there is none.
func readMessage(r io.Reader) (message, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	size := int(int32(binary.LittleEndian.Uint32(length[:])))
	if size < headerLength || size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes: this is not the MongoDB protocol, or it is encrypted", size)
	}
	m := make(message, size)
	copy(m, length[:])
	if _, err := io.ReadFull(r, m[len(length):]); err != nil {
		return nil, fmt.Errorf("message of %d bytes: %w", size, err)
	}
	return m, nil
}

func (m message) requestID() int32 { return int32(binary.LittleEndian.Uint32(m[4:])) }

func (m message) opcode() wiremessage.OpCode {
	return wiremessage.OpCode(binary.LittleEndian.Uint32(m[12:]))
}

// content is what follows the header and, in an OP_MSG, the flags.
func (m message) content() (wiremessage.MsgFlag, []byte, error) {
	if m.opcode() != wiremessage.OpMsg {
		return 0, m[headerLength:], nil
	}
	flags, content, ok := wiremessage.ReadMsgFlags(m[headerLength:])
	if !ok {
		return 0, nil, errTruncated
	}
	return flags, content, nil
}

// unanswered says that the sender expects no reply.
func (m message) unanswered() bool {
	flags, _, err := m.content()
	return err == nil && flags&wiremessage.MoreToCome != 0
}

// single is the message without leave to answer it with more than one reply. The
// server may make use of that leave and need not, so every client can do without.
func (m message) single() message {
	flags, _, err := m.content()
	if err == nil && flags&wiremessage.ExhaustAllowed != 0 {
		binary.LittleEndian.PutUint32(m[flagsOffset:], uint32(flags&^wiremessage.ExhaustAllowed))
	}
	return m
}

// document is the command or the reply in a message.
func (m message) document() (bson.Raw, error) {
	_, content, err := m.content()
	if err != nil {
		return nil, err
	}
	switch m.opcode() {
	case wiremessage.OpMsg:
		return readSections(content)
	case opQuery:
		return readQuery(content)
	case opReply:
		return readReply(content)
	}
	return nil, fmt.Errorf("a message of kind %s: connect without compression", m.opcode())
}

// readSections finds the document of an OP_MSG among its sections. Sequences of further
// documents are passed over.
func readSections(content []byte) (bson.Raw, error) {
	for len(content) > 0 {
		kind, rest, _ := wiremessage.ReadMsgSectionType(content)
		if kind == wiremessage.SingleDocument {
			return readDocument(rest)
		}
		var ok bool
		if _, _, content, ok = wiremessage.ReadMsgSectionRawDocumentSequence(rest); !ok {
			break
		}
	}
	return nil, errTruncated
}

// replyTo is the message that answers a request with a document.
func replyTo(request message, document bson.Raw) message {
	if request.opcode() == opQuery {
		return legacyReply(request, document)
	}
	start, m := wiremessage.AppendHeaderStart(nil, 0, request.requestID(), wiremessage.OpMsg)
	m = wiremessage.AppendMsgFlags(m, 0)
	m = wiremessage.AppendMsgSectionType(m, wiremessage.SingleDocument)
	return bsoncore.UpdateLength(append(m, document...), start, int32(len(m)+len(document)))
}
