package cloudshell_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// scenes are all parts of the protocol that change something.
func scenes() []scene {
	return []scene{
		{"acquire", warm, (*stage).acquire, (*stage).checkAcquire},
		{"acquire once more", used, (*stage).acquire, (*stage).checkAcquire},
		{"acquire what was left behind", leftBehind, (*stage).acquire, (*stage).checkAcquire},
		{"renew", holding, (*stage).renew, (*stage).checkHeld},
		{"fence", holding, (*stage).fence, (*stage).checkHeld},
		{"release", holding, (*stage).release, (*stage).checkRelease},
		{"late release", holdingInSilence, (*stage).release, (*stage).checkRelease},
		{"break", silent, (*stage).breakDead, (*stage).checkBreak},
		{"force", held, (*stage).force, (*stage).checkBreak},
		{"commit", holding, (*stage).commit, (*stage).checkCommit},
		{"commit again", failedOnce, (*stage).commit, (*stage).checkCommit},
		{"forget", failedOnce, (*stage).forget, (*stage).checkForget},
		{"publish", warm, (*stage).publish, (*stage).checkPublish},
		{"retract", published, (*stage).retract, (*stage).checkRetract},
	}
}

// warm makes the session, and the look at the model.
func warm(s *stage) error {
	c, err := s.src.Contend(s.Context(), sweptName, shortClaim(), multilock.Patience{})
	if err != nil {
		return err
	}
	_, err = s.src.Now(s.Context())
	return errors.Join(err, c.Close())
}

func used(s *stage) error {
	if err := holding(s); err != nil {
		return err
	}
	err := s.lease.Release(s.Context())
	s.lease = nil
	return err
}

func holding(s *stage) error {
	if err := warm(s); err != nil {
		return err
	}
	return s.acquire()
}

// leftBehind leaves the service that scripks know, as a late request does.
func leftBehind(s *stage) error {
	if err := holding(s); err != nil {
		return err
	}
	left := s.services()[sweptName]
	err := s.lease.Release(s.Context())
	s.lease = nil
	return errors.Join(err, s.lab.server.PutService(s.sandbox, left))
}

// holdingInSilence is a holder that has not renewed for most of its TTL.
func holdingInSilence(s *stage) error {
	err := holding(s)
	time.Sleep(sweptTTL * 6 / 10) // its own clock has to see that
	return err
}

// silent has a lock of somebody else, watched until it is dead.
func silent(s *stage) error {
	if err := errors.Join(warm(s), s.hold(shortClaim())); err != nil {
		return err
	}
	var err error
	s.observer, err = s.src.Observe(s.Context(), sweptName, multilock.Patience{})
	for err == nil && s.seen.State != multilock.StateDead {
		time.Sleep(s.seen.Next)
		s.seen, err = s.observer.Look(s.Context())
	}
	return err
}

func held(s *stage) error {
	if err := errors.Join(warm(s), s.hold(longClaim())); err != nil {
		return err
	}
	var err error
	if s.observer, err = s.src.Observe(s.Context(), sweptName, multilock.Patience{}); err == nil {
		s.seen, err = s.observer.Look(s.Context())
	}
	return err
}

// hold takes the lock for somebody else.
func (s *stage) hold(claim source.Claim) error {
	c, err := s.other.Contend(s.Context(), sweptName, claim, multilock.Patience{})
	if err != nil {
		return err
	}
	_, err = c.Try(s.Context())
	return err
}

func failedOnce(s *stage) error {
	if err := holding(s); err != nil {
		return err
	}
	return s.committer().Commit(s.Context(), s.result(1))
}

func published(s *stage) error {
	if err := warm(s); err != nil {
		return err
	}
	return s.publish()
}

func (s *stage) acquire() error {
	c, err := s.src.Contend(s.Context(), sweptName, shortClaim(), multilock.Patience{})
	if err != nil {
		return err
	}
	s.lease, err = c.Try(s.Context())
	return err
}

func (s *stage) renew() error   { return s.lease.Renew(s.Context()) }
func (s *stage) release() error { return s.lease.Release(s.Context()) }

func (s *stage) fence() error {
	_, err := s.lease.Fence(s.Context())
	return err
}

func (s *stage) breakDead() error { return s.observer.Break(s.Context()) }
func (s *stage) force() error     { return s.observer.Force(s.Context()) }

func (s *stage) committer() source.Committer { return s.lease.(source.Committer) }

func (s *stage) result(exit int) multilock.Result {
	record := s.lease.Record()
	return multilock.Result{
		Name: sweptName, Token: record.Token, By: record.Holder.Identity, Command: strings.Repeat("make all ", 30), Exit: exit, Attempt: 1 + exit,
		Start: time.Unix(1700000000, 0).UTC(), Duration: time.Minute,
	}
}

func (s *stage) commit() error { return s.committer().Commit(s.Context(), s.result(0)) }
func (s *stage) forget() error { return s.committer().Forget(s.Context()) }

func (s *stage) publish() error {
	_, err := s.src.Publish(s.Context(), []byte("one\techo 1\n"))
	return err
}

func (s *stage) retract() error { return s.src.Retract(s.Context()) }

// topTurn is the highest turn of the lock's register.
type topTurn struct {
	number               uint64
	kind, token, command string
}

func (s *stage) services() map[string]fakecloudshell.Service {
	all := map[string]fakecloudshell.Service{}
	for _, service := range s.lab.server.Services(s.sandbox) {
		all[service.Alias] = service
	}
	return all
}

func (s *stage) top() (top topTurn) {
	for alias, service := range s.services() {
		digits, found := strings.CutPrefix(alias, sweptName+".TURN.")
		number, err := strconv.ParseUint(digits, 10, 64)
		if !found || err != nil || number < top.number {
			continue
		}
		words := strings.Split(service.Attributes[fakecloudshell.OwnerAttribute], ";")
		top = topTurn{number: number, kind: words[1]}
		for _, word := range words {
			if token, found := strings.CutPrefix(word, "n="); found {
				top.token = token
			}
			if command, found := strings.CutPrefix(word, "c="); found {
				top.command = strings.ReplaceAll(command, "+", " ")
			}
		}
	}
	return top
}

func (s *stage) owns(token string) bool {
	top := s.top()
	return top.kind == "held" && top.token == token
}

// shown says whether the service that scripts know names a holder.
func (s *stage) shown(token string) bool {
	owner := s.services()[sweptName].Attributes[fakecloudshell.OwnerAttribute]
	return slices.Contains(strings.Split(owner, ";"), "n="+token)
}

// checkAcquire: acquired means ours; an error means that it is not, and will not
// be, unless it says that it cannot tell.
func (s *stage) checkAcquire(err error) {
	s.Helper()
	switch {
	case s.lease != nil:
		token := s.lease.Record().Token
		require.NoError(s, err)
		require.True(s, s.owns(token))
		require.True(s, s.shown(token))
		s.lab.server.Land()
		require.True(s, s.owns(token), "a late request changes nothing")
	case errors.Is(err, multilock.ErrUnsure):
	default:
		require.Error(s, err)
		s.lab.server.Land()
		require.NotEqual(s, "held", s.top().kind, "an attempt that was not successful left a lock")
	}
}

func (s *stage) checkHeld(err error) {
	s.Helper()
	token := s.lease.Record().Token
	require.NotErrorIs(s, err, multilock.ErrLost)
	require.True(s, s.owns(token))
	require.NoError(s, s.renew(), "it goes on after the fault: %v", err)
	s.lab.server.Land()
	require.True(s, s.owns(token), "a late request changes nothing")
	require.NoError(s, s.renew())
	require.NoError(s, s.release())
	require.Equal(s, "free", s.top().kind)
}

func (s *stage) checkRelease(err error) {
	s.Helper()
	if err != nil {
		require.NotErrorIs(s, err, multilock.ErrLost)
		require.NoError(s, s.release(), "it may be called again after: %v", err)
	}
	require.Equal(s, "free", s.top().kind)
	require.NotContains(s, s.services(), sweptName)
	require.ErrorIs(s, s.release(), multilock.ErrReleased)
	s.lab.server.Land()
	require.Equal(s, "free", s.top().kind)
}

func (s *stage) checkBreak(err error) {
	s.Helper()
	if err == nil {
		require.NotEqual(s, s.seen.Record.Token, s.top().token)
	}
	if err == nil && s.top().kind == "free" {
		require.NotContains(s, s.services(), sweptName)
	}
}

func (s *stage) checkCommit(err error) {
	s.Helper()
	require.NotErrorIs(s, err, multilock.ErrLost)
	want := s.result(0)
	if err != nil {
		require.NoError(s, s.commit(), "it may be called again after: %v", err)
	}
	s.lab.server.Land()
	s.requireResult(want)
	require.NoError(s, s.renew())
	require.NoError(s, s.release())
	s.lab.server.Land()
	s.requireResult(want)
}

func (s *stage) requireResult(want multilock.Result) {
	s.Helper()
	found, err := s.other.Result(s.Context(), sweptName)
	require.NoError(s, err)
	require.Equal(s, want, found)
}

func (s *stage) checkForget(err error) {
	s.Helper()
	if err != nil {
		require.NoError(s, s.forget(), "it may be called again after: %v", err)
	}
	s.lab.server.Land()
	_, err = s.other.Result(s.Context(), sweptName)
	require.ErrorIs(s, err, multilock.ErrNoResult)
	require.NoError(s, s.release())
}

func (s *stage) checkPublish(err error) {
	s.Helper()
	if err != nil {
		require.NoError(s, s.publish(), "it may be called again after: %v", err)
	}
	s.lab.server.Land()
	_, err = s.other.Publish(context.Background(), []byte("another list\n"))
	require.ErrorIs(s, err, multilock.ErrInvalid)
}

func (s *stage) checkRetract(err error) {
	s.Helper()
	if err != nil {
		require.NoError(s, s.retract(), "it may be called again after: %v", err)
	}
	s.lab.server.Land()
	_, err = s.other.Publish(context.Background(), []byte("another list\n"))
	require.NoError(s, err)
}
