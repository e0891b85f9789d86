package command

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/jointest"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// tryTogether has this host and others try locks between them, and adds what came
// of it. The error is for what kept it from coming to an end.
func (r *DoctorReport) tryTogether(ctx context.Context, e *Env, src *place.Source, spec jointest.Spec, o *doctorOptions) error {
	if err := src.Require("doctor: --join", source.TraitPromptRelease, source.TraitBreakByEvidence); err != nil {
		return err
	}
	var here atomic.Int64
	spec.Here = func(hosts int) { here.Store(int64(hosts)) }
	spec.Name, spec.Command = spec.Name+"-join", spec.Command+" --join"
	spec.Hosts, spec.Wait = o.expect.Value, o.timeout.Value
	stop := show.StartNotice(ctx, e.Env, o.Output, func(context.Context, time.Duration) string { return attendance(int(here.Load()), spec) })
	defer stop()
	report, err := jointest.Together(ctx, spec)
	r.Join, r.unshown = &report, report.Open
	r.Findings = append(r.Findings, report.Findings...)
	return err
}

// attendance is for people who wait.
func attendance(here int, s jointest.Spec) string {
	if here >= s.Hosts {
		return fmt.Sprintf("%d hosts are here, and try out locks between them", here)
	}
	return fmt.Sprintf("waiting for other hosts, for %s: %d of %d are here; run the same line on each", console.Short(s.Wait), here, s.Hosts)
}

// whereabouts says what this host looks at, so that it can be compared with what
// another one does.
func (r *DoctorReport) whereabouts(ctx context.Context, src *place.Source) string {
	text := r.where
	for _, f := range r.Findings {
		if f.Subject == "mount" && f.Severity == source.SeverityFine {
			text += "; " + f.Text
			break
		}
	}
	if !src.Place.IsFiles() {
		return text
	}
	inode, err := bounded.Call(ctx, func(context.Context) (uint64, error) { return inodeOf(src.Place.Base) })
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
