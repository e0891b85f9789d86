package etcdlock

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// recordVersion is that of the format of a lock's key. A reader refuses later ones.
const recordVersion = 1

// wire is what a lock's key, or a ticket's, holds.
type wire struct {
	Version   int             `json:"v"`
	Token     string          `json:"token"`
	Holder    source.Holder   `json:"holder"`
	TTL       int64           `json:"ttl_ms"`
	Heartbeat int64           `json:"heartbeat_ms"`
	Job       bool            `json:"job,omitempty"`
	Prepared  time.Time       `json:"prepared"`
	Step      int64           `json:"step,omitempty"` // the number of the last change by the holder
	Groups    []process.Group `json:"groups,omitempty"`
}

func newWire(token string, claim source.Claim) wire {
	return wire{
		Version: recordVersion, Token: token, Holder: claim.Holder.Bounded(), TTL: claim.TTL.Milliseconds(),
		Heartbeat: claim.Heartbeat.Milliseconds(), Job: claim.Job, Prepared: time.Now(),
	}
}

func (w wire) encode() string {
	text, _ := json.Marshal(w) // of texts, numbers and times, which cannot fail
	return string(text)
}

// readRecord never fails: what it does not understand is held by somebody unknown.
func readRecord(name string, value []byte) (source.Record, wire) {
	var w wire
	r := source.Record{Name: name}
	if json.Unmarshal(value, &w) != nil {
		w = wire{}
	}
	limit := source.MaxTTL.Milliseconds()
	switch {
	case w.Version != 0 && w.Version != recordVersion:
		r.Foreign = fmt.Sprintf("its record has format %d, this multilock knows %d", w.Version, recordVersion)
	case w.Version == 0 || w.Token == "" || w.Holder.Host == "":
		r.Foreign = "its record is not one of multilock"
	case w.TTL <= 0 || w.TTL > limit || w.Heartbeat < 0 || w.Heartbeat > w.TTL:
		r.Foreign = "its record has an impossible ttl"
	}
	if r.Foreign != "" {
		return r, wire{}
	}
	r.Token, r.Prepared = source.Printable(source.Shorten(w.Token, source.MaxUser)), w.Prepared
	for _, g := range w.Groups[:min(len(w.Groups), source.MaxGroups+1)] {
		if g.PGID != 0 { // what is no group proves nothing
			r.Groups = append(r.Groups, g)
		}
	}
	r.Claim = source.Claim{
		Holder: w.Holder.Bounded().Printable(), TTL: time.Duration(w.TTL) * time.Millisecond,
		Heartbeat: time.Duration(w.Heartbeat) * time.Millisecond, Job: w.Job,
	}
	return r, w
}
