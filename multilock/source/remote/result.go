package remote

import (
	"encoding/json"
	"slices"

	"github.com/multilock/go/multilock/source"
)

// result is the stored form. Jobs are the jobs of its chunk.
type result struct {
	Version int `json:"v"`
	source.Result
	Jobs []source.ChunkJob `json:"jobs,omitempty"`
}

// EncodeResult returns a result as JSON.
func EncodeResult(r source.Result) ([]byte, error) {
	stored := result{Version: source.ResultVersion, Result: r.Bounded()}
	if stored.Chunk != nil {
		stored.Jobs = slices.Clone(stored.Chunk.Jobs)
		for i := range stored.Jobs {
			stored.Jobs[i].Name = source.EncodeName(stored.Jobs[i].Name)
		}
	}
	return json.Marshal(stored)
}

// resultOf decodes the result of a name; text is nil if there is none.
func resultOf(name string, text []byte) (source.Result, error) {
	if text == nil {
		return source.Result{}, source.ErrNoResult
	}
	return DecodeResult(name, text), nil
}

// DecodeResult never fails: an unreadable record becomes a result with Foreign set, whose job
// counts as run.
func DecodeResult(name string, text []byte) source.Result {
	var stored result
	r := source.Result{Foreign: "it is not a record of multilock"}
	if json.Unmarshal(text, &stored) == nil {
		if stored.Chunk != nil {
			for i := range stored.Jobs {
				stored.Jobs[i].Name = source.DecodeName(stored.Jobs[i].Name)
			}
			stored.Chunk.Jobs = stored.Jobs
		}
		var err error
		if r, err = stored.Read(stored.Version); err != nil {
			r = source.Result{Foreign: err.Error()}
		}
	}
	r.Name = name
	return r
}
