package fslock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// strike is a scene that a process of its own plays, and the one operation at which that
// is struck down.
type strike struct {
	Base, Scene string
	How         string // "crash" or "stop"
	N           int
	Phase       faultfs.Phase
}

func (s strike) injector() (faultfs.Injector, error) {
	switch s.How {
	case "crash":
		return faultfs.CrashAt(s.N, s.Phase), nil
	case "stop":
		return faultfs.StopAt(s.N, s.Phase), nil
	}
	return nil, fmt.Errorf("unknown way to strike %q", s.How)
}

// playSweep is the process that is struck. If it comes through, it goes on with what it believes
// to hold, and writes all that it believed at any time to its output.
func playSweep() error {
	var st strike
	if err := actor.Part(&st); err != nil {
		return err
	}
	s, err := sceneNamed(st.Scene)
	if err != nil {
		return err
	}
	inject, err := st.injector()
	if err != nil {
		return err
	}
	p, err := newPlayer(st.Base, s)
	if err != nil {
		return err
	}
	if err := s.prepare(p); err != nil {
		return err
	}
	p.faulty.Inject(inject)
	_ = s.play(p) // what comes of it is what the parent finds out
	p.faulty.Inject(nil)
	p.goOn()
	if err := json.NewEncoder(os.Stdout).Encode(account{p.beliefs, p.claim}); err != nil {
		return err
	}
	return p.end()
}

// goOn uses the lock as a holder would that noticed nothing.
func (p *player) goOn() {
	if p.lease == nil {
		return
	}
	_ = p.renew()
	_ = p.fence()
	_ = p.release()
}

// victim is the test's end of a process that is struck.
type victim struct {
	*actor.Actor
	output bytes.Buffer
}

func startVictim(t *testing.T, st strike) *victim {
	t.Helper()
	v := &victim{Actor: actor.Prepare(t, "sweep", st)}
	v.Stdout = &v.output
	v.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its job is its own process group
	v.Start(t)
	return v
}

// account is what a process tells of itself in the end.
type account struct {
	Beliefs []belief
	Claim   string // what it says to have done with the result
}

// goOn lets a stopped process go on, and returns its account when it has ended.
func (v *victim) goOn(t *testing.T) (told account) {
	t.Helper()
	v.GoOn(t)
	require.NoError(t, json.Unmarshal(v.output.Bytes(), &told))
	return told
}
