package mongolab

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Memory is a standalone server in memory for the commands of a lock's holders and contenders: find,
// update and findAndModify, with filters that compare fields for equality. It calls an Ask for each
// request, and handles one request at a time. It replies like a real server; see
// TestMemoryAnswersAsServer.
type Memory struct {
	collections map[string][]bson.D
}

// Played is the database whose requests are passed to Ask. The driver sends requests to other databases
// on its own.
const Played = "played"

// NewMemory returns a server without documents.
func NewMemory() *Memory { return &Memory{collections: map[string][]bson.D{}} }

// Ask decides about a request for a document: it executes it, or not. Its error is an error of the
// connection.
type Ask func(name, about string, changes bool, execute func() error) error

// Serve serves a client until its connection ends. Requests that the driver sends on its own are not
// passed to ask.
func (m *Memory) Serve(client net.Conn, ask Ask) {
	defer client.Close()
	for {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		body, err := request.command()
		if err != nil || len(body) == 0 {
			return
		}
		reply := bson.D{}
		execute := func() error { reply = m.execute(body); return nil }
		if isUpkeep(body[0].Key) && field(body, "$db") != Played {
			err = execute()
		} else {
			err = ask(body[0].Key, about(body), slices.Contains([]string{"update", "findAndModify"}, body[0].Key), execute)
		}
		if err != nil {
			return
		}
		raw, err := bson.Marshal(reply)
		if err != nil {
			return
		}
		if _, err := client.Write(replyTo(request, raw)); err != nil {
			return
		}
	}
}

// command returns the complete document of a request, including its document sequences.
func (m message) command() (body bson.D, err error) {
	raw, err := m.single().document()
	if err == nil {
		err = bson.Unmarshal(raw, &body)
	}
	_, content, failed := m.content()
	if err = errors.Join(err, failed); err != nil || m.opcode() != wiremessage.OpMsg {
		return body, err
	}
	for len(content) > 0 {
		kind, rest, _ := wiremessage.ReadMsgSectionType(content)
		if kind == wiremessage.SingleDocument {
			content = rest[len(raw):]
			continue
		}
		name, documents, rest, ok := wiremessage.ReadMsgSectionDocumentSequence(rest)
		if !ok {
			return nil, errTruncated
		}
		all := bson.A{}
		for _, document := range documents {
			var one bson.D
			if err := bson.Unmarshal(document, &one); err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		body, content = append(body, bson.E{Key: name, Value: all}), rest
	}
	return body, nil
}

func field(d bson.D, key string) any {
	for _, e := range d {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

func documentIn(d bson.D, key string) bson.D {
	found, _ := field(d, key).(bson.D)
	return found
}

// statement returns the single statement of an update command, or the whole of any other command.
func statement(body bson.D) bson.D {
	if all, ok := field(body, "updates").(bson.A); ok && len(all) == 1 {
		one, _ := all[0].(bson.D)
		return bson.D{{Key: "filter", Value: field(one, "q")}, {Key: "update", Value: field(one, "u")}, {Key: "upsert", Value: field(one, "upsert")}}
	}
	if query := field(body, "query"); query != nil {
		return append(slices.Clone(body), bson.E{Key: "filter", Value: query})
	}
	return body
}

// about returns the ID of the document that a request names.
func about(body bson.D) string {
	id := field(documentIn(statement(body), "filter"), "_id")
	if id == nil {
		return "-"
	}
	return fmt.Sprint(id)
}

func (m *Memory) execute(body bson.D) bson.D {
	ok := bson.E{Key: "ok", Value: 1.0}
	name := fmt.Sprint(body[0].Value)
	switch command := body[0].Key; {
	case isHello(command):
		return bson.D{
			{Key: "helloOk", Value: true}, {Key: "ismaster", Value: true}, {Key: "isWritablePrimary", Value: true}, {Key: "maxBsonObjectSize", Value: 16 << 20},
			{Key: "maxMessageSizeBytes", Value: maxMessage}, {Key: "maxWriteBatchSize", Value: 100_000}, {Key: "localTime", Value: time.Now()},
			{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "readOnly", Value: false}, ok,
		}
	case command == "buildInfo":
		return bson.D{{Key: "version", Value: "7.0.0"}, ok}
	case command == "listCollections":
		return bson.D{cursor("$cmd.listCollections", bson.A{}), ok}
	case command == "find":
		found := bson.A{}
		if at := m.find(name, documentIn(body, "filter")); at >= 0 {
			found = append(found, m.collections[name][at])
		}
		return bson.D{cursor(name, found), ok}
	case command == "update":
		return m.update(name, statement(body))
	case command == "findAndModify":
		return m.findAndModify(name, statement(body))
	case isUpkeep(command), command == "createIndexes":
		return bson.D{ok}
	}
	return refused(59, "this is not played: "+body[0].Key)
}

func cursor(of string, batch bson.A) bson.E {
	return bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "test." + of}, {Key: "firstBatch", Value: batch}}}
}

func refused(code int, why string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: why}}
}

func (m *Memory) update(name string, s bson.D) bson.D {
	at, inserted, err := m.change(name, s)
	reply := bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "ok", Value: 1.0}}
	switch {
	case err != nil:
		reply[0].Value, reply[1].Value = 0, 0
		return append(reply, bson.E{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: err.Error()}}}})
	case inserted:
		reply[1].Value = 0
		id := field(m.collections[name][at], "_id")
		return append(reply, bson.E{Key: "upserted", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "_id", Value: id}}}})
	case at < 0:
		reply[0].Value, reply[1].Value = 0, 0
	}
	return reply
}

func (m *Memory) findAndModify(name string, s bson.D) bson.D {
	var value any
	if at := m.find(name, documentIn(s, "filter")); at >= 0 {
		value = m.collections[name][at]
	}
	at, _, err := m.change(name, s)
	if err != nil {
		return refused(11000, err.Error())
	}
	if after, _ := field(s, "new").(bool); after && at >= 0 {
		value = m.collections[name][at]
	}
	return bson.D{{Key: "value", Value: value}, {Key: "lastErrorObject", Value: bson.D{{Key: "updatedExisting", Value: at >= 0}}}, {Key: "ok", Value: 1.0}}
}

var errDuplicate = errors.New("E11000 duplicate key error")

// change updates the document that a statement finds, or inserts it. at is negative if there is no such
// document.
func (m *Memory) change(name string, s bson.D) (at int, inserted bool, err error) {
	filter := documentIn(s, "filter")
	at = m.find(name, filter)
	if at >= 0 {
		m.collections[name][at] = changed(m.collections[name][at], documentIn(s, "update"))
		return at, false, nil
	}
	if upsert, _ := field(s, "upsert").(bool); !upsert {
		return -1, false, nil
	}
	if m.find(name, bson.D{{Key: "_id", Value: field(filter, "_id")}}) >= 0 {
		return -1, false, errDuplicate
	}
	document := bson.D{}
	for _, e := range filter {
		document = set(document, e.Key, e.Value)
	}
	m.collections[name] = append(m.collections[name], changed(document, documentIn(s, "update")))
	return len(m.collections[name]) - 1, true, nil
}

func (m *Memory) find(name string, filter bson.D) int {
	return slices.IndexFunc(m.collections[name], func(document bson.D) bool {
		return !slices.ContainsFunc(filter, func(e bson.E) bool { return !same(lookup(document, e.Key), e.Value) })
	})
}

// Lookup returns the value at a path of a document, for checks. It is nil if there is no such value.
func (m *Memory) Lookup(collection, id, path string) any {
	if at := m.find(collection, bson.D{{Key: "_id", Value: id}}); at >= 0 {
		return lookup(m.collections[collection][at], path)
	}
	return nil
}

func lookup(d bson.D, path string) any {
	head, rest, deeper := strings.Cut(path, ".")
	if deeper {
		return lookup(documentIn(d, head), rest)
	}
	return field(d, head)
}

// same compares numbers by value, and everything else by its bytes.
func same(a, b any) bool {
	if x, ok := whole(a); ok {
		y, ok := whole(b)
		return ok && x == y
	}
	kindA, rawA, err := bson.MarshalValue(a)
	kindB, rawB, failed := bson.MarshalValue(b)
	return err == nil && failed == nil && kindA == kindB && bytes.Equal(rawA, rawB)
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// changed returns an updated copy of a document.
func changed(document, update bson.D) bson.D {
	for _, operator := range update {
		fields, _ := operator.Value.(bson.D)
		for _, e := range fields {
			switch operator.Key {
			case "$set":
				document = set(document, e.Key, e.Value)
			case "$unset":
				document = unset(document, e.Key)
			case "$inc":
				by, _ := whole(e.Value)
				was, _ := whole(lookup(document, e.Key))
				document = set(document, e.Key, was+by)
			case "$currentDate":
				document = set(document, e.Key, bson.NewDateTimeFromTime(time.Now()))
			}
		}
	}
	return document
}

func set(d bson.D, path string, value any) bson.D {
	head, rest, deeper := strings.Cut(path, ".")
	if deeper {
		value = set(documentIn(d, head), rest, value)
	}
	d = slices.Clone(d)
	if at := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == head }); at >= 0 {
		d[at].Value = value
		return d
	}
	return append(d, bson.E{Key: head, Value: value})
}

func unset(d bson.D, path string) bson.D {
	head, rest, deeper := strings.Cut(path, ".")
	if deeper {
		if documentIn(d, head) == nil {
			return d
		}
		return set(d, head, unset(documentIn(d, head), rest))
	}
	return slices.DeleteFunc(slices.Clone(d), func(e bson.E) bool { return e.Key == head })
}
