package mongolock

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The fields of a lock's document. _id and locked are those of the recipe, which other programs
// use, too. The document of a free lock has no other fields than these and those that were needed
// before.
const (
	idField      = "_id"
	lockedField  = "locked"  // false, or the token of the acquisition that holds the lock
	groupField   = "group"   // missing in the default group
	fenceField   = "fence"   // the last fencing token; it only grows
	resultField  = "result"  // how the last job ended
	commitsField = "commits" // how often the result was changed; it only grows
	brokenField  = "broken"  // the token of the last broken lock
	// While the lock is held:
	heldField     = "held"     // the holder
	acquiredField = "acquired" // the time of the acquisition, by the server's clock
	seenField     = "seen"     // the last heartbeat, by the server's clock
)

// The fields of "held".
const (
	versionField   = heldField + ".v"
	holderField    = heldField + ".holder"
	ttlField       = heldField + ".ttl_ms"
	heartbeatField = heldField + ".heartbeat_ms"
	jobField       = heldField + ".job"
	keyDigestField = heldField + ".key_digest" // of the job's key
	preparedField  = heldField + ".prepared"   // by the holder's clock
	beatsField     = heldField + ".beats"      // the number of heartbeats
	stepField      = heldField + ".step"       // the number of the last change by the holder: see remote.Changes
	marksField     = heldField + ".groups"     // the process groups of the jobs
)

// held is the sub-document that describes the holder of a lock.
type held struct {
	Version   int32         `bson:"v"`
	Holder    bson.Raw      `bson:"holder"`
	TTL       int64         `bson:"ttl_ms"`
	Heartbeat int64         `bson:"heartbeat_ms"`
	Job       bool          `bson:"job"`
	KeyDigest string        `bson:"key_digest"`
	Prepared  time.Time     `bson:"prepared"`
	Beats     int64         `bson:"beats"`
	Step      int64         `bson:"step"`
	Groups    bson.RawValue `bson:"groups"`
}

// document is a lock's document as read from the server.
type document struct {
	name   string
	raw    bson.Raw
	locked bson.RawValue // of type 0 if there is no such field
	held   held
	// By the server's clock; zero if unknown.
	acquired, seen time.Time
	why            string // why held cannot be read, "" if it can
}

// readDocument never fails: the holder in an unreadable document is unknown.
func readDocument(name string, raw bson.Raw) document {
	d := document{name: name, raw: raw, locked: raw.Lookup(lockedField)}
	if d.token() == "" {
		d.why = unknownWhy(d.locked)
		return d
	}
	d.acquired, _ = raw.Lookup(acquiredField).TimeOK()
	d.seen, _ = raw.Lookup(seenField).TimeOK()
	if err := raw.Lookup(heldField).Unmarshal(&d.held); err != nil {
		d.why = "its record is not one of multilock"
		return d
	}
	if d.held.Beats <= 0 {
		d.why = "its record counts no heartbeat"
	}
	return d
}

func unknownWhy(locked bson.RawValue) string {
	if yes, ok := locked.BooleanOK(); ok && yes {
		return "it was locked by a program that does not identify itself"
	}
	if locked.Type == 0 {
		return "a document of that name is in the collection, and is not a lock"
	}
	return fmt.Sprintf("its field locked is %s, which is not known", source.Printable(source.Shorten(locked.String(), source.MaxUser)))
}

// free reports whether the lock can be acquired. It is equivalent to the filter of an acquisition.
func (d document) free() bool {
	if d.raw == nil {
		return true
	}
	locked, ok := d.locked.BooleanOK()
	return ok && !locked
}

// token returns the token of the acquisition that holds the lock, "" if another program has locked
// it.
func (d document) token() string {
	token, _ := d.locked.StringValueOK()
	return token
}

func (d document) record() source.Record {
	if d.why != "" {
		return source.Record{Name: d.name, Foreign: d.why}
	}
	h := d.held
	r := remote.Record{Version: int(h.Version), Token: d.token(), TTL: h.TTL, Heartbeat: h.Heartbeat, Job: h.Job, KeyDigest: h.KeyDigest, Prepared: h.Prepared, Groups: groupsIn(h.Groups)}
	_ = fromBSON(h.Holder, &r.Holder) // without a holder Read reports a foreign record
	return r.Read(d.name)
}

// groupsIn returns the groups of a mark, one more than the maximum if there are more.
func groupsIn(mark bson.RawValue) (groups []process.Group) {
	array, _ := mark.ArrayOK()
	values, _ := array.Values()
	for _, value := range values[:min(len(values), source.MaxGroups+1)] {
		var g process.Group
		if document, ok := value.DocumentOK(); ok && fromBSON(document, &g) == nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// claimed returns the fields that an acquisition sets.
func claimed(token string, claim source.Claim) (bson.D, error) {
	holder, err := toBSON(claim.Holder.Bounded())
	if err != nil {
		return nil, err
	}
	set := bson.D{
		{Key: lockedField, Value: token},
		{Key: versionField, Value: int32(remote.RecordVersion)},
		{Key: holderField, Value: holder},
		{Key: ttlField, Value: claim.TTL.Milliseconds()},
		{Key: heartbeatField, Value: claim.Heartbeat.Milliseconds()},
		{Key: jobField, Value: claim.Job},
		{Key: preparedField, Value: time.Now()},
		{Key: beatsField, Value: int64(1)},
		{Key: stepField, Value: int64(0)},
	}
	if claim.KeyDigest != "" {
		set = append(set, bson.E{Key: keyDigestField, Value: claim.KeyDigest})
	}
	return set, nil
}

// freeing returns the update that frees a lock, with more fields to set.
func freeing(more ...bson.E) bson.D {
	return bson.D{
		{Key: "$set", Value: append(bson.D{{Key: lockedField, Value: false}}, more...)},
		{Key: "$unset", Value: bson.D{{Key: heldField, Value: ""}, {Key: acquiredField, Value: ""}, {Key: seenField, Value: ""}}},
	}
}

// toBSON converts a value by way of its JSON, so that documents have the field names of --json.
func toBSON(value any) (bson.D, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var document bson.D
	if err := bson.UnmarshalExtJSON(text, false, &document); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return document, nil
}

var errNoDocument = errors.New("it is not a document")

// toJSON reverses the conversion to BSON.
func toJSON(raw bson.Raw) ([]byte, error) {
	if raw.Validate() != nil {
		return nil, errNoDocument
	}
	text, err := bson.MarshalExtJSON(raw, false, false)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return text, nil
}

// fromBSON decodes a value that toBSON encoded.
func fromBSON(raw bson.Raw, value any) error {
	text, err := toJSON(raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
