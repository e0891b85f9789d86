package cooklock

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"
)

// sourceName is the source's name in errors.
const sourceName = "cooklock"

// valueFormat is the format of the values in a register. Readers reject others.
const valueFormat = 1

// wire is a value: the holder that swapped it in. Only its period affects decisions; the token
// makes it unique.
type wire struct {
	Format int    `json:"cook"`
	Token  string `json:"token"`
	source.Holder
	Period   int64     `json:"period_ms"`
	Prepared time.Time `json:"prepared"`
}

// encodeValue encodes a record. It shortens the command to what a register holds.
func encodeValue(r source.Record) ([]byte, error) {
	w := wire{Format: valueFormat, Token: r.Token, Holder: r.Holder.Bounded(), Period: r.TTL.Milliseconds(), Prepared: r.Prepared}
	for limit := MaxValue; ; limit /= 2 {
		w.Command = source.Shorten(w.Command, limit)
		value, err := json.Marshal(w)
		if err != nil {
			return nil, &source.OpError{Source: sourceName, Op: "encode the value", Name: r.Name, Err: err}
		}
		if len(value) <= MaxValue || limit == 0 {
			return value, nil
		}
	}
}

// decodeValue never fails: an unreadable value becomes a record with Foreign set.
func decodeValue(name string, value []byte) source.Record {
	record, err := parseValue(value)
	if err != nil {
		record = source.Record{Foreign: err.Error()}
	}
	record.Name = name
	return record
}

func parseValue(value []byte) (source.Record, error) {
	var w wire
	if err := json.Unmarshal(value, &w); err != nil {
		return source.Record{}, errors.New("the register holds something that multilock did not write")
	}
	switch {
	case w.Format != valueFormat:
		return source.Record{}, fmt.Errorf("the register's value has format %d, this multilock knows %d", w.Format, valueFormat)
	case w.Token == "" || w.Period <= 0 || w.Period > source.MaxTTL.Milliseconds():
		return source.Record{}, errors.New("the register's value lacks its token or has an impossible period")
	}
	return source.Record{
		Token:    source.Printable(w.Token),
		Claim:    source.Claim{Holder: w.Printable(), TTL: time.Duration(w.Period) * time.Millisecond},
		Prepared: w.Prepared,
	}, nil
}
