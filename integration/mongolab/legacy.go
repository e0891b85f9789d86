package mongolab

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// The messages of old, as which drivers still send their first hello and get it
// answered: they do not know yet what the server understands.
const (
	opReply wiremessage.OpCode = 1
	opQuery wiremessage.OpCode = 2004
)

// readQuery reads an OP_QUERY: flags, the name of a collection and a zero, two
// numbers, and the document.
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

// beforeReply is the length of what precedes the document of an OP_REPLY: flags,
// the number of a cursor, and where its documents start and how many there are.
const beforeReply = 4 + 8 + 4 + 4

func readReply(content []byte) (bson.Raw, error) {
	if len(content) < beforeReply {
		return nil, errTruncated
	}
	return readDocument(content[beforeReply:])
}

// readDocument reads the document at the beginning of content.
func readDocument(content []byte) (bson.Raw, error) {
	document, _, ok := bsoncore.ReadDocument(content)
	if !ok {
		return nil, errTruncated
	}
	return bson.Raw(document), document.Validate()
}

// legacyReply is the OP_REPLY with one document.
func legacyReply(request message, document bson.Raw) message {
	const awaitCapable = 8
	length := int32(headerLength + beforeReply + len(document))
	m := wiremessage.AppendHeader(nil, length, 0, request.requestID(), opReply)
	m = binary.LittleEndian.AppendUint32(m, awaitCapable)
	m = binary.LittleEndian.AppendUint64(m, 0) // no cursor
	m = binary.LittleEndian.AppendUint32(m, 0) // from the first document
	m = binary.LittleEndian.AppendUint32(m, 1) // one document
	return append(m, document...)
}
