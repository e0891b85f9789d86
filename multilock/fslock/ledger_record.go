package fslock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/multilock/go/multilock/source"
)

// resultWire is the one line of a result's file.
type resultWire struct {
	Version int    `json:"v"`
	Group   string `json:"group"`
	source.Result
}

// encodeResult gives the bytes of a result's file. The token makes them unique.
func encodeResult(group string, r source.Result) ([]byte, error) {
	line, err := json.Marshal(resultWire{Version: source.ResultVersion, Group: group, Result: r.Bounded()})
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return append(line, '\n'), nil
}

// parseResult reads the bytes of a result's file. It never fails: what it does not
// understand becomes a result with Foreign set, whose job counts as run.
func parseResult(name string, data []byte) source.Result {
	r, err := decodeResult(data)
	if err != nil {
		r = source.Result{Foreign: err.Error()}
	}
	r.Name = name
	return r
}

func decodeResult(data []byte) (source.Result, error) {
	switch {
	case len(data) > maxRecord:
		return source.Result{}, errors.New("it is larger than any that multilock writes")
	case len(bytes.Trim(data, "\x00")) == 0:
		return source.Result{}, errors.New("it is empty")
	case data[len(data)-1] != '\n':
		return source.Result{}, errors.New("its end is missing")
	}
	var w resultWire
	if err := json.Unmarshal(data, &w); err != nil {
		return source.Result{}, errors.New("it is not a record of multilock")
	}
	return w.Read(w.Version)
}
