package mongolab

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// opMsg returns an OP_MSG with this content.
func opMsg(content ...byte) []byte {
	m := wiremessage.AppendHeader(nil, int32(headerLength+4+len(content)), 7, 0, wiremessage.OpMsg)
	return append(wiremessage.AppendMsgFlags(m, 0), content...)
}

// The proxy parses or rejects any input.
func FuzzCommand(f *testing.F) {
	ping, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}})
	require.NoError(f, err)
	section := append([]byte{byte(wiremessage.SingleDocument)}, ping...)
	sequence := append([]byte{byte(wiremessage.DocumentSequence), byte(4 + 2 + len(ping)), 0, 0, 0, 'q', 0}, ping...)
	for _, seed := range [][]byte{
		opMsg(section...), opMsg(append(sequence, section...)...), opMsg(sequence...), opMsg(),
		append(wiremessage.AppendHeader(nil, int32(headerLength+14+len(ping)), 7, 0, opQuery), append(append(make([]byte, 4), "x\x00........"...), ping...)...),
		{}, []byte("\xff\xff\xff\xff and more"), []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc of TLS"), []byte("\x20\x00\x00\x00 and less"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := readMessage(bytes.NewReader(content))
		if err != nil {
			return
		}
		if body, err := m.single().document(); err == nil {
			require.NoError(t, body.Validate())
		}
		_, _ = parseCommand(m)
	})
}
