package remote_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// server is one lock with preset replies.
type server struct {
	remote.Member
	seen    remote.Seen
	err     error
	freed   remote.Freed
	attempt func() (source.Lease, error)
	looks   int
	still   []bool // of each removal
	told    []source.Event
	self    *remote.Contender
}

func (s *server) See(context.Context) (remote.Seen, error) {
	s.looks++
	return s.seen, s.err
}

func (s *server) Remove(_ context.Context, _ remote.Seen, still bool) (remote.Freed, error) {
	s.still = append(s.still, still)
	return s.freed, s.err
}

func (s *server) Attempt(context.Context) (source.Lease, error) { return s.attempt() }

func (s *server) Record(_ context.Context, events []source.Event) error {
	s.told = append(s.told, events...)
	return errors.New("the history cannot be written")
}

func newServer(t *testing.T) *server {
	member, err := remote.Options[string]{}.Join("memory")
	require.NoError(t, err)
	s := &server{Member: member}
	s.self, err = remote.NewContender(s, s, "nightly", source.Claim{TTL: time.Minute, Heartbeat: 6 * time.Second}, source.StalePolicy{})
	require.NoError(t, err)
	return s
}

// held is a lock with a holder on another host.
func held(token string) remote.Seen {
	r, _ := remote.DecodeRecord("nightly", []byte(remote.NewRecord(token, example).Encode()))
	return remote.Seen{Held: true, Record: r, Sign: remote.Sign{Token: token}, Age: source.Unknown, Silence: source.Unknown}
}

// dead is such a lock whose heartbeat the server has expired.
func dead(token string) remote.Seen {
	seen := held(token)
	seen.Lease = process.Gone
	return seen
}

func (s *server) look(t *testing.T) source.Observation {
	seen, err := s.self.Look(t.Context())
	require.NoError(t, err)
	return seen
}

// Break breaks the lock that the last look has called dead, and records it once in the history.
func TestBreak(t *testing.T) {
	for name, c := range map[string]struct {
		freed  remote.Freed
		err    error
		want   error
		broken bool
	}{
		"done":                          {freed: remote.Freed{Done: true}, broken: true},
		"it has shown life since":       {freed: remote.Freed{Held: true}, want: source.ErrHeld},
		"it went away":                  {},
		"somebody else broke it":        {freed: remote.Freed{Marked: true}},
		"by a try that was not heard":   {freed: remote.Freed{Marked: true, Doubt: true}, broken: true},
		"it went away, and a lost try":  {freed: remote.Freed{Doubt: true}},
		"nobody answers":                {err: errNoAnswer, want: errNoAnswer},
		"nobody answers, and it may be": {freed: remote.Freed{Doubt: true}, err: errNoAnswer, want: errNoAnswer},
	} {
		s := newServer(t)
		require.ErrorIs(t, s.self.Break(t.Context()), source.ErrHeld, "nothing was seen yet")
		s.seen = dead("t")
		require.Equal(t, source.StateDead, s.look(t).State)
		s.freed, s.err = c.freed, c.err
		require.ErrorIs(t, s.self.Break(t.Context()), c.want, name)
		require.Equal(t, []bool{true}, s.still, name)
		require.Equal(t, c.broken, len(s.told) == 1, name)
	}
}

// An attempt that has found another holder shows nothing about whether that is alive.
func TestBreakAfterAnAttempt(t *testing.T) {
	s := newServer(t)
	s.seen = dead("first")
	require.Equal(t, source.StateDead, s.look(t).State)
	s.attempt = func() (source.Lease, error) {
		s.self.Note(boottime.Now(), held("second"))
		return nil, source.ErrHeld
	}
	_, err := s.self.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorIs(t, s.self.Break(t.Context()), source.ErrHeld)
	require.Empty(t, s.still)
}

// Force breaks the lock that was seen, dead or alive, and leaves the history to its caller.
func TestForce(t *testing.T) {
	s := newServer(t)
	require.ErrorIs(t, s.self.Force(t.Context()), source.ErrFree)
	s.seen, s.freed = held("t"), remote.Freed{Done: true}
	require.Equal(t, source.StateHeld, s.look(t).State)
	require.NoError(t, s.self.Force(t.Context()))
	require.Equal(t, []bool{false}, s.still)
	require.Empty(t, s.told)
}

// If the server's clock has dated everything, its times are extrapolated from the reply; a look
// that failed shows nothing.
func TestTimesOfAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.seen = held("t")
		s.seen.Age, s.seen.Silence, s.seen.OneClock = 10*time.Second, time.Second, true
		seen := s.look(t)
		require.Equal(t, source.StateHeld, seen.State)
		require.GreaterOrEqual(t, seen.Age, 10*time.Second)
		require.GreaterOrEqual(t, seen.Silence, time.Second)
		s.seen.Silence = -time.Hour // that clock was set back
		require.Zero(t, s.look(t).Silence)
		s.err = errNoAnswer
		_, err := s.self.Look(t.Context())
		require.ErrorIs(t, err, errNoAnswer)
	})
}

// A look sends no request if the attempt right before it has shown a held lock, or while a waiter
// has received no notification. Without that it does, and always if the holder seems dead.
func TestLookAfterAnAttempt(t *testing.T) {
	s := newServer(t)
	s.seen = held("t")
	s.attempt = func() (source.Lease, error) {
		s.self.News.Begin()
		s.self.Note(boottime.Now(), s.seen)
		if s.self.News != nil {
			s.self.News.Refused()
		}
		return nil, source.ErrHeld
	}
	try := func() {
		_, err := s.self.Try(t.Context())
		require.ErrorIs(t, err, source.ErrHeld)
	}
	try()
	s.look(t)
	require.Zero(t, s.looks, "the attempt has shown it")
	s.look(t)
	require.Equal(t, 1, s.looks)
	s.seen = dead("t")
	try()
	require.Equal(t, source.StateDead, s.look(t).State)
	require.Equal(t, 2, s.looks, "what seems dead is looked at")

	s.seen, s.self.News = held("u"), remote.NewNews(time.Minute)
	try()
	for range 3 {
		s.look(t)
		try()
	}
	require.Equal(t, 2, s.looks, "nothing was heard")
	s.self.News.Tell()
	s.look(t)
	require.Equal(t, 3, s.looks)
}

// After an attempt whose reply was lost, the contender recognises its own lock: it sees the lock as
// free, and takes it.
func TestOwnAttempt(t *testing.T) {
	s := newServer(t)
	s.seen = held("t")
	s.seen.Ours = true
	require.Equal(t, source.StateFree, s.look(t).State)
	require.ErrorIs(t, s.self.Failed(errNoAnswer, true), source.ErrUnsure)
	require.NotErrorIs(t, s.self.Failed(errNoAnswer, false), source.ErrUnsure)
	s.self.News = remote.NewNews(time.Minute)
	require.Equal(t, errNoAnswer, s.self.Failed(errNoAnswer, true), "who waits finds out with the next one")
}

// A contender that is not first does not get a free lock, and the ticket of a first waiter that
// died on this host is removed.
func TestFirstWhoWaits(t *testing.T) {
	s := newServer(t)
	left := 0
	waiter := func(holder process.Identity) *remote.Waiter {
		r := held("w").Record
		r.Holder.Identity = holder
		return &remote.Waiter{Record: r, Leave: func(context.Context) { left++ }}
	}
	self := s.Self()
	s.seen = remote.Seen{Waiter: waiter(self)}
	seen := s.look(t)
	require.Equal(t, source.StateHeld, seen.State)
	require.Empty(t, seen.Record.Token)
	require.Equal(t, "it is free, and waiting processes come first", seen.Why)
	require.Zero(t, left)
	require.ErrorIs(t, s.self.Break(t.Context()), source.ErrHeld)
	gone := self
	gone.Start++ // the pid belongs to another process by now
	s.seen = remote.Seen{Waiter: waiter(gone)}
	s.seen.Waiter.Why = "somebody is in the way"
	require.Equal(t, "it is free, and somebody is in the way", s.look(t).Why)
	require.Equal(t, 1, left)
	s.seen = remote.Seen{}
	require.Equal(t, source.StateFree, s.look(t).State)
}

// Attempts with ErrAgain are repeated a few times, unless the context has ended.
func TestTryAgain(t *testing.T) {
	s := newServer(t)
	attempts := 0
	s.attempt = func() (source.Lease, error) {
		attempts++
		return nil, remote.ErrAgain
	}
	_, err := s.self.Try(t.Context())
	require.ErrorIs(t, err, source.ErrPassing)
	require.ErrorContains(t, err, `memory: lock "nightly": acquire: `)
	require.Equal(t, remote.MaxAgain, attempts)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errNoAnswer)
	_, err = s.self.Try(ctx)
	require.ErrorIs(t, err, errNoAnswer)
	require.Equal(t, remote.MaxAgain+1, attempts)
}

// hold is a Hold with preset replies.
type hold struct {
	freed remote.Freed
	err   error
	mine  bool
	text  []byte
}

func (h *hold) Gone() error                                       { return errNoAnswer }
func (h *hold) Beat(context.Context, time.Duration) (bool, error) { return h.mine, h.err }
func (h *hold) Free(context.Context) (remote.Freed, error)        { return h.freed, h.err }
func (h *hold) ReadResult(context.Context) ([]byte, bool, error)  { return h.text, h.mine, h.err }

func (h *hold) Write(_ context.Context, _ string, c remote.Change) (remote.Shown, error) {
	return remote.Shown{Mine: h.mine, Step: -1, Left: c.Before}, h.err
}

// A release whose reply was lost is repeated. If the lock is gone then, the release succeeded,
// unless the lock was broken.
func TestRelease(t *testing.T) {
	for name, c := range map[string]struct {
		freed []remote.Freed
		want  error
	}{
		"done":                               {[]remote.Freed{{Done: true}}, nil},
		"it was lost":                        {[]remote.Freed{{}}, source.ErrLost},
		"it was broken":                      {[]remote.Freed{{Marked: true}}, source.ErrLost},
		"sent twice":                         {[]remote.Freed{{Doubt: true}}, nil},
		"sent twice, broken":                 {[]remote.Freed{{Doubt: true, Marked: true}}, source.ErrLost},
		"not answered":                       {[]remote.Freed{{Doubt: true}, {}}, nil},
		"not answered, and broken meanwhile": {[]remote.Freed{{Doubt: true}, {Marked: true}}, source.ErrLost},
	} {
		h := &hold{}
		l := newServer(t).self.Acquired(h, remote.NewRecord("t", example), boottime.Now(), 0)
		var err error
		for i, freed := range c.freed {
			h.freed, h.err = freed, nil
			if i < len(c.freed)-1 {
				h.err = errNoAnswer
			}
			if err = l.Release(t.Context()); h.err != nil {
				require.ErrorIs(t, err, errNoAnswer, name)
				require.NoError(t, l.Ended(), name)
			}
		}
		require.ErrorIs(t, err, c.want, name)
		if c.want == nil {
			c.want = source.ErrReleased
		}
		require.ErrorIs(t, l.Release(t.Context()), c.want, name)
		require.ErrorIs(t, l.Renew(t.Context()), c.want, name)
	}
}

// A request for a lock that is no longer this lease's fails with ErrLost. After other errors the
// lease may still hold it.
func TestAskedWhileItIsHeld(t *testing.T) {
	h := &hold{}
	l := newServer(t).self.Acquired(h, remote.NewRecord("t", example), boottime.Now(), 0)
	require.ErrorIs(t, l.Renew(t.Context()), source.ErrLost)
	_, err := l.Outcome(t.Context())
	require.ErrorIs(t, err, source.ErrLost)
	h.err = errors.New("no connection")
	require.Equal(t, h.err, l.Renew(t.Context()))
	h.mine, h.err = true, nil
	require.NoError(t, l.Renew(t.Context()))
	_, err = l.Outcome(t.Context())
	require.ErrorIs(t, err, source.ErrNoResult)
	h.text = []byte("what is this?")
	r, err := l.Outcome(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, r.Foreign)
	err = l.MarkJob(t.Context())
	require.ErrorIs(t, err, source.ErrPassing)
	require.ErrorContains(t, err, `memory: lock "nightly": mark the job: `)
}
