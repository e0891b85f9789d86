package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// defaultJoinHosts is the least number of hosts that can try anything together.
const defaultJoinHosts = 2

// checkJoin finds what contradicts itself.
func (o *doctorOptions) checkJoin() error {
	switch {
	case o.expect.Given && !o.join:
		return console.Usagef("doctor", "--expect is how many hosts take part in --join")
	case o.expect.Given && o.expect.Value < defaultJoinHosts:
		return console.Usagef("doctor", "--expect %d: this host counts, so write 2 for one other", o.expect.Value)
	}
	if !o.expect.Given {
		o.expect.Value = defaultJoinHosts
	}
	return nil
}

// canJoin says by name what a source lacks where hosts cannot try locks together.
func (s *openedSource) canJoin() error {
	for _, trait := range []source.Trait{source.TraitPromptRelease, source.TraitBreakByEvidence} {
		if err := s.require("doctor: --join", trait); err != nil {
			return err
		}
	}
	return nil
}

// tryTogether has this host and others try locks between them, and adds what came
// of it. The error is for what kept it from coming to an end.
func (r *doctorReport) tryTogether(ctx context.Context, e *env, src *openedSource, o *doctorOptions) error {
	if err := src.canJoin(); err != nil {
		return err
	}
	m := newMeeting(src, o)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	n := startNotice(waiting, e, o.common, func(context.Context, time.Duration) string { return m.attendance() })
	err := m.run(ctx)
	n.stop()
	if errors.As(err, new(*console.SignalError)) {
		return err
	}
	r.Join, r.unshown = m.view(), m.showedNothing()
	r.Findings = append(r.Findings, m.findings(r.whereabouts(ctx, src))...)
	if errors.As(err, new(*joinError)) {
		return nil // the findings say it
	}
	return err
}

// whereabouts says what this host looks at, so that it can be compared with what
// another one does.
func (r *doctorReport) whereabouts(ctx context.Context, src *openedSource) string {
	text := r.where
	for _, f := range r.Findings {
		if f.Subject == "mount" && f.Severity == source.SeverityFine {
			text += "; " + f.Text
			break
		}
	}
	if !src.opt.isFiles() {
		return text
	}
	inode, err := answered(ctx, func() (uint64, error) { return inodeOf(src.opt.base) })
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s; its inode is %d", text, inode)
}

// inodeOf is the number of a directory on its filesystem: on NFS the server's, so
// that it is the same on all hosts.
func inodeOf(path string) (uint64, error) {
	dir, err := vfs.OS{}.OpenDir(path)
	if err != nil {
		return 0, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	info, err := dir.Stat()
	return info.Inode, err
}
