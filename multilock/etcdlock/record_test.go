package etcdlock

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var example = source.Claim{
	Holder: source.Holder{
		Identity: process.Identity{Host: "h1", Machine: "m", Boot: "b", Namespace: "n", PID: 7, Start: 1 << 50}, User: "ada", Command: "rsync $x",
	},
	TTL: time.Minute, Heartbeat: time.Second, Job: true,
}

func TestClaimComesBack(t *testing.T) {
	w := newWire("token", example)
	w.Groups = []process.Group{{PGID: 12}, {}}
	r, read := readRecord("nightly", []byte(w.encode()))
	require.Empty(t, r.Foreign)
	require.Equal(t, example, r.Claim)
	require.Equal(t, "token", r.Token)
	require.Equal(t, []process.Group{{PGID: 12}}, r.Groups, "what is no group proves nothing")
	require.True(t, w.Prepared.Equal(r.Prepared))
	require.Equal(t, "token", read.Token)
}

// What multilock has not written is held by somebody unknown, and never broken by itself.
func TestForeignRecords(t *testing.T) {
	changed := func(change func(*wire)) string {
		w := newWire("token", example)
		change(&w)
		return w.encode()
	}
	whole := newWire("token", example).encode()
	for value, want := range map[string]string{
		"":                     "is not one of multilock",
		"true":                 "is not one of multilock",
		"{}":                   "is not one of multilock",
		"[1,2]":                "is not one of multilock",
		"\xff\x00":             "is not one of multilock",
		whole[:len(whole)/2]:   "is not one of multilock", // torn
		whole + whole:          "is not one of multilock",
		`{"v":2,"anything":1}`: "has format 2",
		changed(func(w *wire) { w.Version = -1 }):                           "has format -1",
		changed(func(w *wire) { w.Token = "" }):                             "is not one of multilock",
		changed(func(w *wire) { w.Holder.Host = "" }):                       "is not one of multilock",
		changed(func(w *wire) { w.TTL = 0 }):                                "impossible ttl",
		changed(func(w *wire) { w.TTL = source.MaxTTL.Milliseconds() + 1 }): "impossible ttl",
		changed(func(w *wire) { w.Heartbeat = w.TTL + 1 }):                  "impossible ttl",
		changed(func(w *wire) { w.Heartbeat = -1 }):                         "impossible ttl",
	} {
		r, w := readRecord("nightly", []byte(value))
		require.Contains(t, r.Foreign, want, value)
		require.Equal(t, wire{}, w, value)
		e := source.Evidence{Record: r, Silence: time.Hour, Unchanged: time.Hour, Watched: time.Hour, MaxAge: time.Second}
		require.Equal(t, source.StateHeld, judge(e).State, value)
		_, err := readResult("nightly", &keyValue{Value: []byte(value)})
		require.NoError(t, err, value)
	}
}

// FuzzValue: whatever a key holds, the lock is held, by somebody who is known or by somebody unknown.
func FuzzValue(f *testing.F) {
	f.Add([]byte(newWire("token", example).encode()))
	result, err := json.Marshal(resultWire{Version: source.ResultVersion, Result: source.Result{Name: "nightly", Exit: 3}})
	require.NoError(f, err)
	f.Add(result)
	for _, seed := range []string{"", "{}", `{"v":1,"token":"x","holder":{"host":"h"},"ttl_ms":1e300}`, `[{"t":1}]`, `{"v":1,"id":"x","parts":-1}`} {
		f.Add([]byte(seed))
	}
	s := &Source{server: &server{}}
	f.Fuzz(func(t *testing.T, value []byte) {
		r, w := readRecord("nightly", value)
		require.NotEqual(t, r.Foreign == "", r.Token == "")
		require.Equal(t, r.Foreign == "", w.Token != "")
		if r.Foreign == "" {
			require.Positive(t, r.TTL)
			require.NotEmpty(t, r.Holder.Host)
		}
		kv := &keyValue{Value: value}
		got, err := readResult("nightly", kv)
		require.NoError(t, err)
		require.Equal(t, "nightly", got.Name)
		_ = eventsIn(kv, time.Time{})
		if c, err := s.readContents(kv); err == nil {
			require.LessOrEqual(t, c.Parts*partSize, maxManifest)
		}
	})
}
