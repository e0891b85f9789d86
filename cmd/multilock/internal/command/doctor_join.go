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
	"github.com/multilock/go/multilock/source"
)

// joinNeeds are the traits that a test of locks between hosts needs.
var joinNeeds = []source.Trait{source.TraitPromptRelease, source.TraitBreakByEvidence}

// tryTogether tests locks between this host and others, and adds the findings. It returns an error if the
// test could not be completed.
func (r *DoctorReport) tryTogether(ctx context.Context, e *Env, src *place.Source, spec jointest.Spec, o *doctorOptions) error {
	if err := src.Require("doctor: --join", joinNeeds...); err != nil {
		r.unshown = true
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

// attendance describes the wait for other hosts.
func attendance(here int, s jointest.Spec) string {
	if here >= s.Hosts {
		return fmt.Sprintf("%d hosts joined, and test locks between them", here)
	}
	return fmt.Sprintf("waiting up to %s for other hosts: %d of %d joined; run the same command on each", console.Short(s.Wait), here, s.Hosts)
}
