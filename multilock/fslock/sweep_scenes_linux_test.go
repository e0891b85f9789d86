package fslock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// scene is a part of the protocol that is swept: each of its operations gets a fault in turn.
type scene struct {
	name   string
	legacy bool
	// prepare is not swept.
	prepare func(*player) error
	play    func(*player) error
	// check checks that the answer is true.
	check func(*testing.T, struck)
	// queues means that the scene is about a position in the queue for the lock.
	queues bool
	// waits means that the scene has hundreds of operations, because it watches for a missing heartbeat.
	waits bool
	// records means that the scene is about the result of the lock's job.
	records bool
	// lists are the manifests that others may find afterwards, if the scene is about manifests; it locks
	// nothing then.
	lists []string
}

func (s scene) String() string { return s.name }

// swept are the scenes to sweep, all of them if the run is exhaustive.
func swept() []scene {
	return slices.DeleteFunc(scenes(), func(s scene) bool { return s.waits && !sweep.Exhaustive() })
}

// scenes are all parts of the protocol that change something.
func scenes() []scene {
	return []scene{
		{name: "first acquire", prepare: prepareNothing, play: playAcquire, check: requireAcquired},
		{name: "acquire", prepare: prepareBase, play: playAcquire, check: requireAcquired},
		{name: "acquire with legacy peers", legacy: true, prepare: prepareBase, play: playAcquire, check: requireAcquired},
		{name: "wait then acquire", prepare: prepareWait, play: playFurtherTry, check: requireAcquired},
		{name: "wait then acquire with legacy peers", legacy: true, prepare: prepareWait, play: playFurtherTry, check: requireAcquired},
		{name: "take over", prepare: prepareDead, play: playAcquire, check: requireAcquired},
		{name: "mark", prepare: prepareHold, play: (*player).mark, check: requireMarked},
		{name: "mark several", prepare: prepareMarked, play: (*player).markAgain, check: requireMarkedAgain},
		{name: "heartbeat", prepare: prepareHold, play: (*player).renew, check: requireRenewed},
		{name: "heartbeat again", prepare: prepareBeating, play: (*player).renew, check: requireRenewed},
		{name: "queue up", prepare: prepareBase, play: playQueue, check: requireQueued, queues: true},
		{name: "queue up behind the dead", prepare: prepareDeadTicket, play: playQueue, check: requireQueued, queues: true, waits: true},
		{name: "fence", prepare: prepareHold, play: (*player).fence, check: requireFenced},
		{name: "release", prepare: prepareMarked, play: (*player).release, check: requireReleased},
		{name: "release with legacy peers", legacy: true, prepare: prepareHold, play: (*player).release, check: requireReleased},
		{name: "break", prepare: prepareDead, play: playBreak, check: requireBrokenOrNot},
		{name: "clean", prepare: prepareLeftover, play: playSweepLeftovers, check: requireSwept},
		{name: "history", prepare: prepareBase, play: playAppend, check: requireAppended},
		{name: "empty", prepare: prepareBase, play: playEmpty, check: requireNothingHeld},
		{name: "empty without a group", prepare: prepareNoGroup, play: playEmpty, check: requireNothingHeld},
		{name: "empty though held", prepare: prepareHold, play: playEmpty, check: requireNotEmpty},
		{name: "tidy", prepare: prepareEmpty, play: playTidy, check: requireTidied},
		{name: "commit", prepare: prepareHold, play: (*player).commit, check: requireCommitted, records: true},
		{name: "commit with legacy peers", legacy: true, prepare: prepareHold, play: (*player).commit, check: requireCommitted, records: true},
		{name: "commit again", prepare: prepareFailure, play: (*player).commit, check: requireCommitted, records: true},
		{name: "commit where a probe crashed", prepare: prepareProbe, play: (*player).commit, check: requireCommitted, records: true},
		{name: "first outcome", prepare: prepareHold, play: (*player).learn, check: requireLearned, records: true},
		{name: "outcome", prepare: prepareSuccess, play: (*player).learn, check: requireLearned, records: true},
		{name: "outcome where a probe crashed", prepare: prepareProbe, play: (*player).learn, check: requireLearned, records: true},
		{name: "forget", prepare: prepareSuccess, play: (*player).forget, check: requireForgotten, records: true},
		{name: "publish", prepare: prepareNothing, play: (*player).publish, check: requirePublished, lists: []string{myManifest, nextManifest}},
		{name: "publish where there is one", prepare: prepareManifest, play: (*player).publish, check: requirePublished, lists: []string{theirManifest}},
		{name: "continue a list", prepare: prepareManifest, play: (*player).grow, check: requireGrown, lists: []string{theirManifest, theirManifest + myManifest}},
		{name: "retract", prepare: prepareManifest, play: (*player).retract, check: requireRetracted, lists: []string{theirManifest, nextManifest}},
		{name: "retract what has grown", prepare: prepareGrown, play: (*player).retract, check: requireRetracted, lists: []string{theirManifest, nextManifest}},
	}
}

func sceneNamed(name string) (scene, error) {
	all := scenes()
	i := slices.IndexFunc(all, func(s scene) bool { return s.name == name })
	if i < 0 {
		return scene{}, errors.New("no scene " + name)
	}
	return all[i], nil
}

func prepareNothing(*player) error { return nil }

// prepareBase makes the first use of the base directory, with the scene's own source, so that what it opens
// once is open.
func prepareBase(p *player) error {
	if err := p.compete(p.src, sweptClaim()); err != nil {
		return err
	}
	err := p.release()
	p.lease, p.beliefs = nil, nil
	return err
}

// prepareWait has the player wait so long that what it staged needs a new time.
func prepareWait(p *player) error {
	if err := p.compete(p.plain, sweptClaim()); err != nil {
		return err
	}
	var err error
	p.rival, err = p.src.Contend(context.Background(), sweptName, sweptClaim(), source.StalePolicy{})
	if err != nil {
		return err
	}
	if _, err := p.rival.Try(context.Background()); !errors.Is(err, source.ErrHeld) {
		return err
	}
	time.Sleep(sweptTTL / 2)
	err = p.release()
	p.lease, p.beliefs = nil, nil
	return err
}

func prepareHold(p *player) error { return p.compete(p.src, sweptClaim()) }

// prepareBeating makes the next heartbeat one that relies on the previous one.
func prepareBeating(p *player) error {
	if err := prepareHold(p); err != nil {
		return err
	}
	return p.renew()
}

func prepareMarked(p *player) error {
	claim := sweptClaim()
	claim.Job = true
	if err := p.compete(p.src, claim); err != nil {
		return err
	}
	return p.mark()
}

// prepareDead leaves the lock and the job of a process that is gone.
func prepareDead(p *player) error {
	if err := prepareBase(p); err != nil {
		return err
	}
	claim := sweptClaim()
	claim.Holder.Identity, claim.Job = theDead(p.self), true
	c, err := p.plain.Contend(context.Background(), sweptName, claim, source.StalePolicy{})
	if err != nil {
		return err
	}
	lease, err := c.Try(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(lease.MarkJob(context.Background(), someJob(p.self)), lease.Close(), c.Close())
}

// prepareLeftover leaves what a process that is gone had staged.
func prepareLeftover(p *player) error {
	if err := prepareBase(p); err != nil {
		return err
	}
	claim := sweptClaim()
	claim.Holder.Identity = theDead(p.self)
	c, err := p.plain.Contend(context.Background(), sweptName, claim, source.StalePolicy{})
	if err != nil {
		return err
	}
	return errors.Join(copyStaged(p.plain.Base()), c.Close())
}

// copyStaged copies what is staged, so that it outlives its contender.
func copyStaged(base string) error {
	staging := filepath.Join(base, ".multilock", "staging")
	files, err := filepath.Glob(filepath.Join(staging, "*", sweptName+".locked"))
	if err != nil {
		return err
	}
	for _, file := range files {
		copied := filepath.Join(staging, uuid.NewString())
		if err := os.CopyFS(copied, os.DirFS(filepath.Dir(file))); err != nil {
			return err
		}
	}
	return nil
}

func playAcquire(p *player) error { return p.compete(p.src, sweptClaim()) }

func playFurtherTry(p *player) error {
	lease, err := insist(p.rival)
	if err == nil {
		p.lease = lease
		p.believe("acquired", lease.Since())
	}
	err = errors.Join(err, p.rival.Close())
	p.rival = nil
	return err
}

func playBreak(p *player) error {
	var err error
	p.observer, err = p.src.Observe(context.Background(), sweptName, source.StalePolicy{})
	if err != nil {
		return err
	}
	p.seen, err = p.observer.Look(context.Background())
	if err != nil || p.seen.State != source.StateDead {
		return err
	}
	return p.observer.Break(context.Background())
}

func playSweepLeftovers(p *player) (err error) {
	p.swept, err = p.src.Sweep(context.Background())
	return err
}

func playAppend(p *player) error {
	p.event = source.Event{Time: time.Now(), What: source.EventAcquired, Name: sweptName, Token: "appended"}
	return p.src.Append(context.Background(), p.event)
}

// prepareNoGroup leaves what an earlier barrier leaves.
func prepareNoGroup(p *player) error {
	return errors.Join(prepareBase(p), os.Remove(filepath.Join(p.src.Base(), fslock.DefaultGroup)))
}

// prepareEmpty leaves what a crash in the middle of a release leaves.
func prepareEmpty(p *player) error {
	return errors.Join(prepareBase(p), os.Mkdir(filepath.Join(p.src.Base(), fslock.DefaultGroup, sweptName), 0o777))
}

func playEmpty(p *player) (err error) {
	p.empty, err = p.src.Empty(context.Background())
	return err
}

func playTidy(p *player) error { return p.src.Tidy(context.Background(), sweptName) }

// requireNothingHeld: nothing is held, and only a client that lies can hide that. The source's open descriptors
// do not affect its next lock.
func requireNothingHeld(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.empty || o.err != nil || o.lie)
	requireEmpty(t, o.src, true)
	require.NoError(t, o.compete(o.src, sweptClaim()))
	requireEmpty(t, o.src, false)
	require.NoError(t, o.release())
}

// requireNotEmpty: whatever fails, and whatever a cache answers, a held lock is not overlooked.
func requireNotEmpty(t *testing.T, o struck) {
	t.Helper()
	require.False(t, o.empty)
	require.True(t, o.held(t))
	require.NoError(t, o.renew())
	require.NoError(t, o.release())
	requireEmpty(t, o.src, true)
}

func requireTidied(t *testing.T, o struck) {
	t.Helper()
	if o.err == nil && !o.lie {
		requireEmpty(t, o.src, true)
	}
	require.NoError(t, o.src.Tidy(t.Context(), sweptName))
	requireEmpty(t, o.src, true)
}
