package mongolab

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// opMsg is an OP_MSG with these flags and this content.
func opMsg(flags wiremessage.MsgFlag, content []byte) message {
	m := wiremessage.AppendHeader(nil, int32(headerLength+4+len(content)), 7, 0, wiremessage.OpMsg)
	return append(wiremessage.AppendMsgFlags(m, flags), content...)
}

func marshal(t testing.TB, v any) []byte {
	document, err := bson.Marshal(v)
	require.NoError(t, err)
	return document
}

// body is a section with one document.
func body(t testing.TB, v any) []byte {
	return append(wiremessage.AppendMsgSectionType(nil, wiremessage.SingleDocument), marshal(t, v)...)
}

// sequence is a section with a list of documents.
func sequence(name string, documents ...[]byte) []byte {
	content := append([]byte(name), 0)
	for _, document := range documents {
		content = append(content, document...)
	}
	section := wiremessage.AppendMsgSectionType(nil, wiremessage.DocumentSequence)
	section = binary.LittleEndian.AppendUint32(section, uint32(4+len(content)))
	return append(section, content...)
}

// query is an OP_QUERY.
func query(t testing.TB, collection string, v any) message {
	content := append(make([]byte, 4), collection...)
	content = append(content, make([]byte, 1+8)...)
	content = append(content, marshal(t, v)...)
	return append(wiremessage.AppendHeader(nil, int32(headerLength+len(content)), 7, 0, opQuery), content...)
}

func TestFirstHelloIsRead(t *testing.T) {
	c, err := parseCommand(query(t, "admin.$cmd", bson.D{{Key: "isMaster", Value: 1}}))
	require.NoError(t, err)
	require.Equal(t, "isMaster", c.Name)
	require.Equal(t, "admin", c.Database)
	require.Empty(t, c.Collection)
	require.True(t, c.Upkeep)
}

func TestCommandIsRead(t *testing.T) {
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: bytes.Repeat([]byte{0xab}, 16)}
	command := body(t, bson.D{
		{Key: "update", Value: "locks"},
		{Key: "lsid", Value: bson.D{{Key: "id", Value: id}}},
		{Key: "txnNumber", Value: int64(3)},
		{Key: "$db", Value: "test"},
	})
	updates := sequence("updates", marshal(t, bson.D{{Key: "q", Value: 1}}), marshal(t, bson.D{{Key: "q", Value: 2}}))
	checksum := []byte{1, 2, 3, 4}
	for name, m := range map[string]message{
		"body first":     opMsg(0, append(bytes.Clone(command), updates...)),
		"sequence first": opMsg(0, append(bytes.Clone(updates), command...)),
		"checksum":       opMsg(wiremessage.ChecksumPresent, append(append(bytes.Clone(command), updates...), checksum...)),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parseCommand(m)
			require.NoError(t, err)
			require.Equal(t, "update", c.Name)
			require.Equal(t, "locks", c.Collection)
			require.Equal(t, "test", c.Database)
			require.Equal(t, "abababababababababababababababab", c.Session)
			require.Equal(t, int64(3), c.TxnNumber)
			require.False(t, c.Upkeep)
			require.Equal(t, int64(2), c.Body.Lookup("updates", "1", "q").AsInt64())
		})
	}
}

func TestReplyIsRead(t *testing.T) {
	reply := marshal(t, bson.D{{Key: "ok", Value: 1}})
	for _, request := range []message{opMsg(0, nil), query(t, "admin.$cmd", bson.D{})} {
		m, err := readMessage(bytes.NewReader(replyTo(request, reply)))
		require.NoError(t, err)
		document, err := m.document()
		require.NoError(t, err)
		require.Equal(t, bson.Raw(reply), document)
		require.Equal(t, int32(7), int32(binary.LittleEndian.Uint32(m[8:])), "which request it answers")
	}
}

func TestOneReplyIsAskedFor(t *testing.T) {
	m := opMsg(wiremessage.ExhaustAllowed, body(t, bson.D{{Key: "hello", Value: 1}}))
	flags, _, err := m.single().content()
	require.NoError(t, err)
	require.Zero(t, flags)
}

func TestMessageThatIsNone(t *testing.T) {
	for name, content := range map[string]string{
		"nothing":    "",
		"too little": "\x00\x01",
		"too short":  "\x0f\x00\x00\x00 and more",
		"negative":   "\xff\xff\xff\xff and more",
		"TLS":        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
		"cut off":    "\x20\x00\x00\x00 and less",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readMessage(bytes.NewReader([]byte(content)))
			require.Error(t, err)
			if name == "nothing" {
				require.ErrorIs(t, err, io.EOF)
			}
		})
	}
}

// Whatever arrives, the proxy refuses it or has read it.
func FuzzCommand(f *testing.F) {
	f.Add([]byte(opMsg(0, body(f, bson.D{{Key: "ping", Value: 1}}))))
	f.Add([]byte(opMsg(wiremessage.ChecksumPresent, append(body(f, bson.D{{Key: "ping", Value: 1}}), 0, 0, 0, 0))))
	f.Add([]byte(opMsg(0, append(body(f, bson.D{{Key: "insert", Value: "c"}}), sequence("documents", marshal(f, bson.D{}))...))))
	f.Add([]byte(query(f, "admin.$cmd", bson.D{{Key: "isMaster", Value: 1}})))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := readMessage(bytes.NewReader(content))
		if err != nil {
			return
		}
		c, err := parseCommand(m.single())
		if err != nil {
			return
		}
		require.NotNil(t, c.Body)
		require.NoError(t, c.Body.Validate())
	})
}
