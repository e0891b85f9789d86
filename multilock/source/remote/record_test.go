package remote_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var example = source.Claim{
	Holder: source.Holder{
		Identity: process.Identity{Host: "h1", Machine: "m", Boot: "b", Namespace: "n", PID: 7, Start: 1 << 50}, User: "ada", Command: "rsync $x",
	},
	TTL: time.Minute, Heartbeat: time.Second, Job: true, KeyDigest: "of a key",
}

func TestClaimComesBack(t *testing.T) {
	w := remote.NewRecord("token", example)
	w.Groups = []process.Group{{PGID: 12}, {}}
	r, read := remote.DecodeRecord("nightly", []byte(w.Encode()))
	require.Empty(t, r.Foreign)
	require.Equal(t, example, r.Claim)
	require.Equal(t, "token", r.Token)
	require.Equal(t, []process.Group{{PGID: 12}}, r.Groups, "what is no group proves nothing")
	require.True(t, w.Prepared.Equal(r.Prepared))
	require.Equal(t, "token", read.Token)
}

// A record that multilock has not written has an unknown holder, and is never broken without force.
func TestForeignRecords(t *testing.T) {
	changed := func(change func(*remote.Record)) string {
		w := remote.NewRecord("token", example)
		change(&w)
		return w.Encode()
	}
	whole := remote.NewRecord("token", example).Encode()
	for value, want := range map[string]string{
		"":                     "is not one of multilock",
		"true":                 "is not one of multilock",
		"{}":                   "is not one of multilock",
		"[1,2]":                "is not one of multilock",
		"\xff\x00":             "is not one of multilock",
		whole[:len(whole)/2]:   "is not one of multilock", // truncated
		whole + whole:          "is not one of multilock",
		`{"v":2,"anything":1}`: "has format 2",
		changed(func(w *remote.Record) { w.Version = -1 }):                           "has format -1",
		changed(func(w *remote.Record) { w.Token = "" }):                             "is not one of multilock",
		changed(func(w *remote.Record) { w.Holder.Host = "" }):                       "is not one of multilock",
		changed(func(w *remote.Record) { w.TTL = 0 }):                                "impossible ttl",
		changed(func(w *remote.Record) { w.TTL = source.MaxTTL.Milliseconds() + 1 }): "impossible ttl",
		changed(func(w *remote.Record) { w.Heartbeat = w.TTL + 1 }):                  "impossible ttl",
		changed(func(w *remote.Record) { w.Heartbeat = -1 }):                         "impossible ttl",
	} {
		r, w := remote.DecodeRecord("nightly", []byte(value))
		require.Contains(t, r.Foreign, want, value)
		require.Equal(t, remote.Record{}, w, value)
		e := source.Evidence{Record: r, Silence: time.Hour, Unchanged: time.Hour, Watched: time.Hour, MaxAge: time.Second}
		require.Equal(t, source.StateHeld, remote.Judge(e, false).State, value)
		require.NotEmpty(t, remote.DecodeResult("nightly", []byte(value)).Foreign, value)
	}
}

// FuzzStored: whatever a store contains, the lock is held, by a known or by an unknown process, and
// a result counts as run.
func FuzzStored(f *testing.F) {
	f.Add([]byte(remote.NewRecord("token", example).Encode()))
	result, err := remote.EncodeResult(source.Result{Name: "nightly", Exit: 3})
	require.NoError(f, err)
	f.Add(result)
	for _, seed := range []string{"", "{}", `{"v":1,"token":"x","holder":{"host":"h"},"ttl_ms":1e300}`, `[{"t":1}]`, `{"v":1,"id":"x","parts":-1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, stored := remote.DecodeRecord("nightly", text)
		require.NotEqual(t, r.Foreign == "", r.Token == "")
		require.Equal(t, r.Foreign == "", stored.Token != "")
		if r.Foreign == "" {
			require.Positive(t, r.TTL)
			require.NotEmpty(t, r.Holder.Host)
		}
		require.Equal(t, "nightly", remote.DecodeResult("nightly", text).Name)
		since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, e := range remote.DecodeEvents(text, since) {
			require.False(t, e.Time.Before(since))
		}
	})
}
