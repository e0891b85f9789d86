package fslock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/multilock/go/multilock/source"
)

// A result's file is one line of JSON. A chunk's result has a further line for each of its jobs that has a
// result, so that the first line is enough for a summary.

// resultWire is the first line of a result's file.
type resultWire struct {
	Version int    `json:"v"`
	Group   string `json:"group"`
	source.Result
}

// maxChunkResult bounds how much of a chunk's result is read. Our results are below 64 KiB, unless the
// names of the jobs are very long.
const maxChunkResult = 1 << 20

// encodeResult returns the bytes of a result's file. The token makes them unique among holders, and the
// jobs' times among the successive results that one holder records for a chunk.
func encodeResult(group string, r source.Result) ([]byte, error) {
	r = r.Bounded()
	r.Name = source.EncodeName(r.Name)
	var file bytes.Buffer
	lines := json.NewEncoder(&file)
	err := lines.Encode(resultWire{Version: source.ResultVersion, Group: group, Result: r})
	if r.Chunk != nil {
		for _, job := range r.Chunk.Jobs {
			job.Name = source.EncodeName(job.Name)
			err = errors.Join(err, lines.Encode(job))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return file.Bytes(), nil
}

// parseResult reads the bytes of a result's file. It never fails: an unreadable result becomes a result
// with Foreign set, whose job counts as run.
func parseResult(name string, data []byte) source.Result {
	return resultOf(name, data, decodeResult)
}

// parseSummary is parseResult for the first line alone.
func parseSummary(name string, data []byte) source.Result {
	return resultOf(name, data, decodeSummary)
}

func resultOf(name string, data []byte, decode func([]byte) (source.Result, error)) source.Result {
	r, err := decode(data)
	if err == nil && source.DecodeName(r.Name) != name {
		err = fmt.Errorf("it is that of the job %q, renamed", r.Name) // perhaps by a user whose own result would not be trusted
	}
	if err != nil {
		r = source.Result{Foreign: err.Error()}
	}
	r.Name = name
	return r
}

func decodeResult(data []byte) (source.Result, error) {
	switch {
	case len(data) > maxChunkResult:
		return source.Result{}, errNotOurs
	case len(bytes.Trim(data, "\x00")) == 0:
		return source.Result{}, errors.New("it is empty")
	case data[len(data)-1] != '\n':
		return source.Result{}, errors.New("it is truncated")
	}
	first, rest, _ := bytes.Cut(data, []byte{'\n'})
	w, err := decodeFirst(first)
	if err != nil {
		return source.Result{}, err
	}
	if err := decodeJobs(w.Chunk, rest); err != nil {
		return source.Result{}, err
	}
	return w.Read(w.Version)
}

var errNotOurs = errors.New("it is larger than any that multilock writes")

func decodeFirst(line []byte) (w resultWire, err error) {
	switch {
	case len(line) > maxRecord:
		return w, errNotOurs
	case json.Unmarshal(line, &w) != nil:
		return w, errors.New("it is not a record of multilock")
	}
	return w, nil
}

// decodeJobs reads the lines after the first one, which has their number.
func decodeJobs(chunk *source.Chunk, rest []byte) error {
	if chunk == nil {
		if len(rest) > 0 {
			return errors.New("it is not a record of multilock")
		}
		return nil
	}
	for line := range bytes.Lines(rest) {
		var job source.ChunkJob
		if json.Unmarshal(line, &job) != nil {
			return errors.New("the record of one of its jobs is not a multilock record")
		}
		job.Name = source.DecodeName(job.Name)
		chunk.Jobs = append(chunk.Jobs, job)
	}
	if chunk.Recorded != len(chunk.Jobs) {
		return errors.New("the records of some of its jobs are missing")
	}
	return nil
}

// decodeSummary reads the first line of data.
func decodeSummary(data []byte) (source.Result, error) {
	first, _, whole := bytes.Cut(data, []byte{'\n'})
	if !whole {
		return source.Result{}, errors.New("it is truncated")
	}
	w, err := decodeFirst(first)
	if err != nil {
		return source.Result{}, err
	}
	return w.Read(w.Version)
}
