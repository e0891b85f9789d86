package fslock

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// sample is the record of an ordinary lock.
func sample() source.Record {
	return source.Record{
		Name: "job", Token: "0b0f8f2e-5d9f-4f0e-9c0c-2f6f3a6f4a11",
		Claim: source.Claim{
			Holder: source.Holder{
				Identity: process.Identity{Host: "node7", Machine: "00aa", Boot: "b007", Namespace: "pid:[4026531836]", PID: 4711, Start: 12345},
				User:     "alice", Command: "rsync -a /data /backup",
			},
			TTL: time.Minute, Heartbeat: 6 * time.Second, Job: true, KeyDigest: "of a key",
		},
		Prepared: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC),
	}
}

func encode(t testing.TB, r source.Record) []byte {
	t.Helper()
	data, err := encodeRecord(DefaultGroup, r)
	require.NoError(t, err)
	return data
}

// Rule: record
func TestRecordRoundTrip(t *testing.T) {
	require.Equal(t, sample(), ParseRecord("job", encode(t, sample())))
}

// A crash leaves a part of the record, or nothing of it. No part counts as a complete record of ours,
// except one that only lacks the last newline.
// Rule: record, I6
func TestTornRecordIsNobodysWhole(t *testing.T) {
	whole := encode(t, sample())
	for cut := range len(whole) - 1 {
		r := ParseRecord("job", whole[:cut])
		require.Empty(t, r.Token, "cut after %d bytes", cut)
		require.Zero(t, r.TTL)
	}
}

// The first line is all that the Python MultiLock reads of our lock file, and all that it writes.
// Rule: record, python
func TestFirstLineIsThePeersFormat(t *testing.T) {
	head, _, _ := strings.Cut(string(encode(t, sample())), "\n")
	require.Equal(t, "node7 4711", head)
	r := ParseRecord("job", []byte("node7 4711"))
	require.Empty(t, r.Foreign)
	require.Equal(t, "node7", r.Holder.Host)
	require.Equal(t, 4711, r.Holder.PID)
	require.Empty(t, r.Token)
	require.Zero(t, r.TTL)
}

// seeds are contents that have been found in the place of a lock file, or may be.
func seeds(t testing.TB) [][]byte {
	good := encode(t, sample())
	change := func(old, with string) []byte { return bytes.Replace(good, []byte(old), []byte(with), 1) }
	return [][]byte{
		nil, good, good[:len(good)/2], good[:len(good)-2], append(bytes.Clone(good), good...),
		[]byte("node7 4711"), []byte("node7 4711\n"), []byte("node7 -1\n\n \n"), []byte("4711 node7\n"), []byte("node7 99999999999999999999\n"),
		bytes.Repeat([]byte{0}, 4096), []byte("\x00\x00node7 4711\x00"), append([]byte("\xef\xbb\xbf"), good...), []byte("\xff\xfen\x00o\x00"),
		bytes.Repeat([]byte("a"), maxRecord), bytes.Repeat([]byte("a"), maxRecord+1), append(bytes.Clone(good), bytes.Repeat([]byte(" "), maxRecord)...),
		[]byte("node7 4711\n" + strings.Repeat("[", 20000)), []byte("node7 4711\n" + strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)),
		[]byte("node7 4711\nnull"), []byte("node7 4711\n[]"), []byte("node7 4711\n{}"), []byte("node7 4711\n\"text\""),
		change(`"v":1`, `"v":2`), change(`"v":1`, `"v":"1"`), change(`"v":1`, `"V":1,"v":0`), change(`"v":1,`, ""),
		change(`"ttl_ms":60000`, `"ttl_ms":0`), change(`"ttl_ms":60000`, `"ttl_ms":-1`), change(`"ttl_ms":60000`, `"ttl_ms":9223372036854775807`),
		change(`"ttl_ms":60000`, `"ttl_ms":1e3`), change(`"heartbeat_ms":6000`, `"heartbeat_ms":60001`), change(`"heartbeat_ms":6000`, `"heartbeat_ms":-1`),
		change(`"token":"0b0f`, `"token":"\u001b[2J`), change("node7", "no\x1b]0;de7"), change("rsync", `\u0007\u202e`), change(`"pid":4711`, `"pid":1e99`),
	}
}

// No bytes cause a panic, or make a lock with a holder's token, or contain anything that would control the
// terminal of a reader.
// Rule: I6, record
func FuzzParseRecord(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := ParseRecord("job", data)
		require.Equal(t, "job", r.Name)
		for _, shown := range []string{r.Holder.Host, r.Holder.User, r.Holder.Command, r.Token} {
			require.NotContains(t, shown, "\x1b")
			require.Equal(t, -1, strings.IndexFunc(shown, func(c rune) bool { return !unicode.IsPrint(c) }), "%q", shown)
		}
		switch {
		case r.Foreign != "":
			require.Equal(t, source.Record{Name: "job", Foreign: r.Foreign}, r)
		case r.Token != "":
			requireOurs(t, r, data)
		default:
			require.NotEmpty(t, r.Holder.Host)
			require.Zero(t, r.TTL)
		}
	})
}

// requireOurs checks that bytes from which a record with a token was read have our format and version, and
// that its durations are valid.
func requireOurs(t *testing.T, r source.Record, data []byte) {
	t.Helper()
	require.LessOrEqual(t, len(data), maxRecord)
	_, body, found := bytes.Cut(data, []byte("\n"))
	require.True(t, found)
	var version struct {
		V int `json:"v"`
	}
	require.NoError(t, json.Unmarshal(body, &version))
	require.Equal(t, recordVersion, version.V)
	require.NotEmpty(t, r.Holder.Host)
	require.Positive(t, r.TTL)
	require.LessOrEqual(t, r.TTL, source.MaxTTL)
	require.GreaterOrEqual(t, r.Heartbeat, time.Duration(0))
	require.LessOrEqual(t, r.Heartbeat, r.TTL)
}

// Whatever a holder's name and command are, others can read its record unchanged.
// Rule: record
func FuzzEncodeRecord(f *testing.F) {
	f.Add("node7", 4711, "alice", "rsync -a /data /backup", "job", int64(60000), int64(6000))
	f.Add("my laptop", -1, "", "", " ", int64(100), int64(0))
	f.Add("\tnode\n7\x00", 1, "a\xffb", "echo '\n{\"v\":2}\n'", "a\nb", int64(1), int64(1))
	f.Add("node7", 1, strings.Repeat("u", maxRecord), strings.Repeat("é", source.MaxCommand), "ö", int64(1<<40), int64(1<<40))
	f.Fuzz(func(t *testing.T, host string, pid int, user, command, name string, ttl, beat int64) {
		ttl = min(max(ttl, 1), source.MaxTTL.Milliseconds())
		beat = min(max(beat, 0), ttl)
		r := sample()
		r.Name, r.TTL, r.Heartbeat = name, time.Duration(ttl)*time.Millisecond, time.Duration(beat)*time.Millisecond
		r.Holder.Host, r.Holder.PID, r.Holder.User, r.Holder.Command = host, pid, user, command
		if host == "" || len(host) > 64 {
			return // no host has such a name (gethostname(2))
		}
		data := encode(t, r)
		require.LessOrEqual(t, len(data), maxRecord)
		got := ParseRecord(name, data)
		require.Empty(t, got.Foreign, "%q", data)
		want := r
		want.Holder.Host, want.Holder.User = source.Printable(host), source.Printable(source.Shorten(user, source.MaxUser))
		want.Holder.Command = source.Printable(source.Shorten(command, source.MaxCommand))
		require.Equal(t, want, got)
	})
}

var (
	alive = process.Evidence{Life: process.Alive, Why: "process 7 is running on this host"}
	gone7 = process.Evidence{Life: process.Gone, Why: "process 7 no longer exists"}
)

// trial is a case of the tables below: evidence, and the expected assessment.
type trial struct {
	evidence
	want source.State
	why  string
	next time.Duration
}

func (c trial) judge(t *testing.T) {
	t.Helper()
	got := judge(c.evidence)
	require.Equal(t, c.want.String(), got.State.String(), got.Why)
	require.Contains(t, got.Why, c.why)
	require.Equal(t, c.next, got.Next)
}

func judgeAll(t *testing.T, trials map[string]trial) {
	t.Helper()
	for name, c := range trials {
		t.Run(name, func(t *testing.T) { c.judge(t) })
	}
}

// Without a TTL only MaxAge limits the time without a heartbeat.
// Rule: unreadable
func TestJudgeWithoutATTL(t *testing.T) {
	foreign, peer := source.Record{Foreign: "the lock file is torn"}, peerRecord("host", 7)
	const year, window = 365 * 24 * time.Hour, 6*time.Second + 100*time.Millisecond
	judgeAll(t, map[string]trial{
		"its pid proves nothing":        {evidence{Evidence: source.Evidence{Holder: gone7, Job: gone7}}, source.StateHeld, "Python MultiLock", 5 * glance},
		"foreign, for ever":             {evidence{Evidence: source.Evidence{Record: foreign, Silence: year, Unchanged: year, Watched: year}}, source.StateHeld, "torn; it has no ttl", 5 * glance},
		"peer, for ever":                {evidence{Evidence: source.Evidence{Record: peer, Silence: year, Unchanged: year, Watched: year}}, source.StateHeld, "Python MultiLock; it has no ttl", 5 * glance},
		"foreign, max-age not over":     {evidence{Evidence: source.Evidence{Record: foreign, MaxAge: time.Minute, Silence: 30 * time.Second}}, source.StateHeld, "torn", 5 * glance},
		"peer, max-age not watched":     {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Minute, Silence: time.Minute, Watched: window - 1}}, source.StateSuspect, "watching it for 6.1s", window / 6},
		"newer, max-age over":           {evidence{Evidence: source.Evidence{MaxAge: time.Minute, Silence: time.Minute, Watched: window}, strange: strange{ours: true}}, source.StateDead, "limit of 1m0s", 0},
		"peer, max-age over":            {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Minute, Silence: time.Minute, Watched: window}}, source.StateDead, "limit of 1m0s", 0},
		"peer that lives, max-age over": {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Minute, Silence: year, Watched: year}, peer: alive}, source.StateHeld, "process 7 is running on this host", glance},
		"peer that is not there":        {evidence{Evidence: source.Evidence{Record: peer, Silence: year, Watched: year}, peer: gone7}, source.StateHeld, "and process 7 no longer exists", 5 * glance},
		"legacy peer, just silent":      {evidence{Evidence: source.Evidence{Record: peer, Silence: orphanLimit - 1}, peer: gone7, legacy: true}, source.StateHeld, "it is cleared", 10 * time.Millisecond},
		"legacy peer, not watched":      {evidence{Evidence: source.Evidence{Record: peer, Silence: orphanLimit, Watched: orphanWindow - 1}, peer: gone7, legacy: true}, source.StateSuspect, "watching it for 2s", orphanWindow / 6},
		"legacy peer, watched":          {evidence{Evidence: source.Evidence{Record: peer, Silence: orphanLimit, Watched: orphanWindow}, peer: gone7, legacy: true}, source.StateDead, "process 7", 0},
		"legacy peer, a long max-age":   {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Hour, Silence: orphanLimit, Watched: orphanWindow}, peer: gone7, legacy: true}, source.StateDead, "process 7", 0},
		"legacy peer, a short max-age":  {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Second, Silence: time.Second, Watched: time.Second}, peer: gone7, legacy: true}, source.StateDead, "limit of 1s", 0},
		"legacy peer that lives":        {evidence{Evidence: source.Evidence{Record: peer, Silence: year, Watched: year}, peer: alive, legacy: true}, source.StateHeld, "process 7 is running", glance},
		"a long max-age, long window":   {evidence{Evidence: source.Evidence{Record: foreign, MaxAge: year, Silence: year, Watched: tornBeat}}, source.StateSuspect, "watching it for 30.1s", (tornBeat + 100*time.Millisecond) / 6},
	})
}

// An empty file with unsyncedMark: 90 s without a heartbeat and 45 s of watching.
// Rule: unreadable
func TestJudgeTorn(t *testing.T) {
	r := source.Record{Foreign: errEmptyRecord.Error()}
	const limit, window = 90 * time.Second, 45 * time.Second
	judgeAll(t, map[string]trial{
		"young":          {evidence{Evidence: source.Evidence{Record: r, Silence: limit - time.Second}, torn: true}, source.StateHeld, "its record is empty", time.Second},
		"silent":         {evidence{Evidence: source.Evidence{Record: r, Silence: limit}, torn: true}, source.StateSuspect, "watching it for 45s", window / 6},
		"almost":         {evidence{Evidence: source.Evidence{Record: r, Silence: limit, Watched: window - 1}, torn: true}, source.StateSuspect, "watching it for 45s", window / 6},
		"and watched":    {evidence{Evidence: source.Evidence{Record: r, Silence: limit, Watched: window}, torn: true}, source.StateDead, "limit of 1m30s", 0},
		"max-age longer": {evidence{Evidence: source.Evidence{Record: r, Silence: limit, Watched: window, MaxAge: time.Hour}, torn: true}, source.StateHeld, "its record is empty", 5 * glance},
	})
}

// Rule: orphan
func TestJudgeOrphan(t *testing.T) {
	left := []string{".nfs0001", "job.job", "job.lock"}
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		e      evidence
		strays []string
		want   source.State
		why    string
	}{
		"young":           {evidence{Evidence: source.Evidence{Silence: time.Second}}, left, source.StateHeld, "no lock file"},
		"silent":          {evidence{Evidence: source.Evidence{Silence: orphanLimit}}, left, source.StateSuspect, "watching it for 2s"},
		"and watched":     {evidence{Evidence: source.Evidence{Silence: orphanLimit, Watched: orphanWindow}}, left, source.StateDead, "limit of 10s"},
		"empty":           {evidence{Evidence: source.Evidence{Silence: orphanLimit, Watched: orphanWindow}}, nil, source.StateDead, "limit of 10s"},
		"max-age is moot": {evidence{Evidence: source.Evidence{Silence: orphanLimit, Watched: orphanWindow, MaxAge: time.Hour}}, left, source.StateDead, "limit of 10s"},
		"foreign":         {evidence{Evidence: source.Evidence{Silence: year, Watched: year, MaxAge: 1}}, append(left, "thesis.txt"), source.StateHeld, "thesis.txt"},
		"another's lock":  {evidence{Evidence: source.Evidence{Silence: year, Watched: year, MaxAge: 1}}, []string{"other.lock"}, source.StateHeld, "other.lock"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeOrphan(c.e, c.strays, "job")
			require.Equal(t, c.want.String(), got.State.String(), got.Why)
			require.Contains(t, got.Why, c.why)
		})
	}
}

// How samples must be spaced for a holder: a slow sample proves nothing.
// Rule: silence
func TestLimitsOfSamples(t *testing.T) {
	require.Equal(t, source.WatchLimits{Slow: 500 * time.Millisecond, Gap: 2 * time.Second}, limitsFor(2*time.Second))
	require.Equal(t, source.WatchLimits{Slow: fastest, Gap: 2 * fastest}, limitsFor(0))
}
