package remote

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// RecordVersion is the version of the stored form of a Record. Readers reject other versions.
const RecordVersion = 1

// Record is the holder of a lock, or a waiter, as stored.
type Record struct {
	Version   int             `json:"v"`
	Token     string          `json:"token"`
	Holder    source.Holder   `json:"holder"`
	TTL       int64           `json:"ttl_ms"`
	Heartbeat int64           `json:"heartbeat_ms"`
	Job       bool            `json:"job,omitempty"`
	KeyDigest string          `json:"key_digest,omitempty"` // of the job's key
	Prepared  time.Time       `json:"prepared"`
	Step      int64           `json:"step,omitempty"` // the number of the last change by the holder
	Groups    []process.Group `json:"groups,omitempty"`
}

// NewRecord returns the record of a claim.
func NewRecord(token string, claim source.Claim) Record {
	return Record{
		Version: RecordVersion, Token: token, Holder: claim.Holder.Bounded(), TTL: claim.TTL.Milliseconds(),
		Heartbeat: claim.Heartbeat.Milliseconds(), Job: claim.Job, KeyDigest: claim.KeyDigest, Prepared: time.Now(),
	}
}

// Encode returns the record as JSON.
func (r Record) Encode() string {
	text, _ := json.Marshal(r) // cannot fail: only texts, numbers and times
	return string(text)
}

// DecodeRecord never fails: an unreadable record has an unknown holder, and the stored record is
// zero then.
func DecodeRecord(name string, text []byte) (source.Record, Record) {
	var stored Record
	if json.Unmarshal(text, &stored) != nil {
		stored = Record{}
	}
	r := stored.Read(name)
	if r.Foreign != "" {
		stored = Record{}
	}
	return r, stored
}

// Read validates a stored record and makes it printable.
func (r Record) Read(name string) source.Record {
	limit := source.MaxTTL.Milliseconds()
	foreign := ""
	switch {
	case r.Version != 0 && r.Version != RecordVersion:
		foreign = fmt.Sprintf("its record has format %d, this multilock knows %d", r.Version, RecordVersion)
	case r.Version == 0 || r.Token == "" || r.Holder.Host == "":
		foreign = "its record is not one of multilock"
	case r.TTL <= 0 || r.TTL > limit || r.Heartbeat < 0 || r.Heartbeat > r.TTL:
		foreign = "its record has an impossible ttl"
	}
	if foreign != "" {
		return source.Record{Name: name, Foreign: foreign}
	}
	return source.Record{
		Name: name, Token: source.Printable(source.Shorten(r.Token, source.MaxUser)), Prepared: r.Prepared, Groups: r.groups(),
		Claim: source.Claim{Holder: r.Holder.Bounded().Printable(), TTL: milliseconds(r.TTL), Heartbeat: milliseconds(r.Heartbeat), Job: r.Job, KeyDigest: r.KeyDigest},
	}
}

// groups returns the valid groups, source.MaxGroups+1 at most, so that readers see if there are too
// many. An invalid one proves nothing.
func (r Record) groups() (groups []process.Group) {
	for _, g := range r.Groups[:min(len(r.Groups), source.MaxGroups+1)] {
		if g.PGID != 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
