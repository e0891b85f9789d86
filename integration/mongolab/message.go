package mongolab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

const (
	headerLength = 16
	// flagsOffset is the offset of the flags of an OP_MSG.
	flagsOffset = headerLength
	// maxMessage is mongod's maxMessageSizeBytes, plus room for the header.
	maxMessage = 48_000_000 + 16<<10
)

// errTruncated reports that a message ends before its content does.
var errTruncated = errors.New("the message is shorter than its content")

// message is one message of the MongoDB wire protocol, byte for byte.
type message []byte

// readMessage reads the next message. At the end of the stream the error is io.EOF.
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

// content returns what follows the header and, in an OP_MSG, the flags.
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

// unanswered reports whether the sender expects no reply.
func (m message) unanswered() bool {
	flags, _, err := m.content()
	return err == nil && flags&wiremessage.MoreToCome != 0
}

// single clears the flag that permits several replies. A server need not use that permission, so no
// client depends on it.
func (m message) single() message {
	flags, _, err := m.content()
	if err == nil && flags&wiremessage.ExhaustAllowed != 0 {
		binary.LittleEndian.PutUint32(m[flagsOffset:], uint32(flags&^wiremessage.ExhaustAllowed))
	}
	return m
}

// document returns the command or reply in a message.
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

// readSections returns the body document of an OP_MSG. It skips document sequences.
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

// replyTo returns a reply to a request, with this document.
func replyTo(request message, document bson.Raw) message {
	if request.opcode() == opQuery {
		return legacyReply(request, document)
	}
	start, m := wiremessage.AppendHeaderStart(nil, 0, request.requestID(), wiremessage.OpMsg)
	m = wiremessage.AppendMsgFlags(m, 0)
	m = wiremessage.AppendMsgSectionType(m, wiremessage.SingleDocument)
	return bsoncore.UpdateLength(append(m, document...), start, int32(len(m)+len(document)))
}

// Legacy opcodes. Drivers still use them for the first hello, before they know what the server
// supports.
const (
	opReply wiremessage.OpCode = 1
	opQuery wiremessage.OpCode = 2004
)

// readQuery reads an OP_QUERY: flags, the collection name and a zero byte, two numbers, and the
// document.
func readQuery(content []byte) (bson.Raw, error) {
	const flags, skipAndReturn = 4, 8
	if len(content) < flags {
		return nil, errTruncated
	}
	_, rest, found := bytes.Cut(content[flags:], []byte{0})
	if !found || len(rest) < skipAndReturn {
		return nil, errTruncated
	}
	return readDocument(rest[skipAndReturn:])
}

// beforeReply is the length of what precedes the document of an OP_REPLY: flags, cursor ID, position of
// the first document, number of documents.
const beforeReply = 4 + 8 + 4 + 4

func readReply(content []byte) (bson.Raw, error) {
	if len(content) < beforeReply {
		return nil, errTruncated
	}
	return readDocument(content[beforeReply:])
}

// readDocument reads the document at the start of content.
func readDocument(content []byte) (bson.Raw, error) {
	document, _, ok := bsoncore.ReadDocument(content)
	if !ok {
		return nil, errTruncated
	}
	return bson.Raw(document), document.Validate()
}

// legacyReply returns an OP_REPLY with one document.
func legacyReply(request message, document bson.Raw) message {
	const awaitCapable = 8
	length := int32(headerLength + beforeReply + len(document))
	m := wiremessage.AppendHeader(nil, length, 0, request.requestID(), opReply)
	m = binary.LittleEndian.AppendUint32(m, awaitCapable)
	m = binary.LittleEndian.AppendUint64(m, 0) // no cursor
	m = binary.LittleEndian.AppendUint32(m, 0) // first document is number 0
	m = binary.LittleEndian.AppendUint32(m, 1) // one document
	return append(m, document...)
}

// Command is a client's command as the proxy received it.
type Command struct {
	// N is the number of earlier commands on all connections since the last call of [Server.Inject].
	// Upkeep is not counted.
	N int
	// Nth is the number of earlier commands with this name, counted likewise.
	Nth int
	// Name is the command's name: "update", "insert", "find", "findAndModify", ...
	Name string
	// Session is the client's session (lsid.id, in hexadecimal), empty without a session.
	Session string
	// TxnNumber numbers the retryable writes of a session. It is 0 if the driver will not retry this
	// command.
	TxnNumber int64
	// Upkeep reports that the driver sent this command on its own: the hello that opens a connection or
	// monitors the server, authentication, the end of sessions. Such commands come at any time, and
	// their numbers are -1.
	Upkeep bool
}

// parseCommand reads a command from a message.
func parseCommand(m message) (Command, error) {
	body, err := m.document()
	if err != nil {
		return Command{}, err
	}
	first, err := body.IndexErr(0)
	if err != nil {
		return Command{}, errors.New("a command without a name")
	}
	c := Command{Name: first.Key(), Session: session(body)}
	c.TxnNumber, _ = body.Lookup("txnNumber").AsInt64OK()
	c.Upkeep = c.Session == "" && isUpkeep(c.Name)
	return c, nil
}

func session(body bson.Raw) string {
	_, id, _ := body.Lookup("lsid", "id").BinaryOK()
	return hex.EncodeToString(id)
}

func isUpkeep(name string) bool {
	return isHello(name) || name == "saslStart" || name == "saslContinue" || name == "endSessions"
}

// isHello also recognises the old names of the command.
func isHello(name string) bool { return name == "hello" || strings.EqualFold(name, "isMaster") }
