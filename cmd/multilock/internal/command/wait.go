package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type waitOptions struct {
	common
	probing
	timeout, settle, since, poll, maxAge console.Duration
	takeover                             console.WaitLimit
	expect                               console.Number
	named                                nameList
	membersFrom                          string
	members                              []string
	allowEmpty, list                     bool
	output                               outputPolicy
}

// Wait waits at a barrier.
func Wait(e *Env) *cli.Command {
	o := &waitOptions{}
	return &cli.Command{
		Name:      "wait",
		ArgsUsage: "-g GROUP [options]",
		Usage:     "wait until no lock in the group is held, or jobs are done",
		Description: `Waits until no lock in the group is held, or until jobs are done. Exits with 1 if
a job failed or its host died, and with 124 if --wait has passed.

   day=$(date +%F)
   for i in 1 2 3; do
     ssh host$i multilock -d /shared -g $day run -n job$i --once -- work $i &
   done
   multilock -d /shared -g $day wait --members job1,job2,job3 && next-step`,
		Flags: e.Flags("wait", options.Values{
			"wait": &o.timeout, "members": &o.named, "members-from": &o.membersFrom, "expect": &o.expect, "list": &o.list, "since": &o.since,
			"wait-for-takeover": &o.takeover, "settle": &o.settle, "allow-empty": &o.allowEmpty, "output": (*string)(&o.output),
			"probe": &o.Probe, "poll": &o.poll, "max-age": &o.maxAge,
		}),
		Action: action(e, &o.common, func(*cli.Context) error { return o.read(e) },
			func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

// read reads the names of the members.
func (o *waitOptions) read(e *Env) (err error) {
	o.members, err = readMembers(e, o.named, o.membersFrom)
	if err == nil && len(o.members) == 0 && (e.Line.Has("members") || e.Line.Has("members-from")) {
		return console.Usagef("wait", "--members and --members-from name no member")
	}
	return err
}

func (o *waitOptions) barrier(e *Env, probe source.Probe) lockgroup.BarrierOptions {
	takeover := o.takeover.Value
	switch {
	case o.takeover.Forever:
		takeover = -1
	case o.takeover.Given:
		takeover = max(takeover, 1) // 0 means the default
	}
	died := func(h lockgroup.Holding) {
		if l := show.LockOf(h.Name, h.Observation); o.forResults() && !o.JSON && !o.Quiet {
			e.Say("%s died, run by %s (%s); waiting for another host to take it over", show.Subject(l.Name), l.Holder(), l.Why)
		}
	}
	return lockgroup.BarrierOptions{
		Members: o.members, Expect: o.expect.Value, Settle: o.settle.Value, Since: o.since.Value, Poll: o.poll.Value,
		StalePolicy: multilock.StalePolicy{MaxAge: o.maxAge.Value, Probe: probe}, Takeover: takeover, Died: died,
	}
}

func (o *waitOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	group, err := o.barrierSource(src)
	if err != nil {
		return err
	}
	probe, err := o.prober(e, src, "wait", e.Say)
	if err != nil {
		return err
	}
	if _, err := lockgroup.NewBarrier(group, o.barrier(e, probe)); err != nil {
		return err
	}
	o.warnOneHost(e, src)
	return waitAt(ctx, e, o, src, func(ctx context.Context, members []string) (lockgroup.Report, error) {
		opt := o.barrier(e, probe)
		opt.Members = members
		barrier, err := lockgroup.NewBarrier(group, opt)
		if err != nil {
			return lockgroup.Report{}, err
		}
		defer show.StartWaitProgress(ctx, e.Env, o.Output, barrier)()
		return barrier.Wait(ctx)
	})
}

// barrierSource checks that the source supports the barrier, and returns it.
func (o *waitOptions) barrierSource(src *place.Source) (source.Group, error) {
	if o.forResults() {
		if _, err := place.Ability[source.Ledger](src, "wait", source.TraitResults); err != nil {
			return nil, err
		}
	}
	if err := src.CheckNames(o.members); err != nil {
		return nil, err
	}
	return place.Ability[source.Group](src, "wait", source.TraitCheapBarrier)
}

// waitAt waits, shows progress, and reports the outcome.
func waitAt(ctx context.Context, e *Env, o *waitOptions, src *place.Source, wait func(ctx context.Context, members []string) (lockgroup.Report, error)) (err error) {
	sigs := console.CatchSignals()
	defer sigs.Release()
	limit := console.WaitLimit{Duration: o.timeout, Forever: !o.timeout.Given}
	ctx, cancel := limit.Limited(sigs.Until(ctx))
	defer cancel()
	start := time.Now()
	var report lockgroup.Report
	if o.list {
		report, err = o.waitForList(ctx, src, wait)
	} else {
		report, err = wait(ctx, o.members)
	}
	err = o.output.join(err, report.Incomplete)
	if err == nil {
		err = o.checkKnown(ctx, src)
	}
	view := viewOfWait(src, report, time.Since(start), err)
	if o.JSON {
		return errors.Join(err, e.PrintJSON(view))
	}
	if !errors.As(err, new(*console.SignalError)) {
		view.print(e, o)
	}
	if o.Verbose && err == nil {
		e.Say("nothing is left to wait for, after %s", console.Short(time.Since(start)))
	}
	return err
}

// forResults reports whether to wait for jobs that may not have started yet.
func (o *waitOptions) forResults() bool { return len(o.members) > 0 || o.expect.Given || o.list }

// checkKnown rejects a group that was never used: its name is wrong, or the jobs have not started yet.
func (o *waitOptions) checkKnown(ctx context.Context, src *place.Source) error {
	asked, ok := src.Locks.(source.Known)
	if !ok || o.allowEmpty || o.forResults() {
		return nil
	}
	known, err := asked.Known(ctx)
	if known || errors.Is(err, fs.ErrPermission) { // the permission error has already been reported
		return nil
	}
	if err != nil {
		return err
	}
	return console.Usagef("wait", "%s has never been used, so there was nothing to wait for: is that the group (-g), have its jobs begun? "+
		"To wait for jobs that have not started yet, name them with --members; if an empty group is fine, use --allow-empty", src.Where())
}

// nameList is a flag's value: comma-separated names. A name that contains a comma must come from a file.
type nameList []string

func (l *nameList) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name != "" {
			*l = append(*l, name)
		}
	}
	return nil
}

// readMembers reads the names of jobs from options and a file.
func readMembers(e *Env, named []string, path string) ([]string, error) {
	if path == "" {
		return named, nil
	}
	f, from, err := openList(e, path)
	if err != nil {
		return nil, fmt.Errorf("read the names of the jobs: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was read
	listed, err := parseMembers(f, from)
	return append(named, listed...), err
}

// parseMembers reads names from lines: the text before the first tab, or the whole line. It skips
// empty lines, comments, and a list's BARRIER, NEEDS and SHELL lines.
func parseMembers(r io.Reader, from string) ([]string, error) {
	text, _, err := readText(r, from, "wait")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		name, _, _ := strings.Cut(line, "\t")
		if isRemark(line) || strings.TrimSpace(name) == "" || line == barrierLine || isNeedsLine(line) || isShellLine(line) {
			continue
		}
		names = append(names, name)
	}
	return names, nil
}

// waitView is the output of "wait --json".
type waitView struct {
	Base   string `json:"base"`
	Group  string `json:"group"`
	Open   bool   `json:"open"` // the barrier is open
	OK     bool   `json:"ok"`   // it is open, and everything is done
	Done   int    `json:"done"`
	Failed int    `json:"failed"`
	// Unfinished counts the jobs without a final result, of Members or Expect.
	Unfinished     int            `json:"unfinished"`
	Failures       []show.Failure `json:"failures"`
	UnfinishedJobs []string       `json:"unfinished_jobs"`
	// OutputLost are the jobs that are done, but with incomplete output.
	OutputLost []show.OutputLost `json:"output_lost"`
	Dead       []show.Lock       `json:"dead"`
	Held       []show.Lock       `json:"held"`
	Warnings   []string          `json:"warnings,omitempty"` // why locks of dead holders could not be cleared
	Unreadable []string          `json:"unreadable,omitempty"`
	Waited     float64           `json:"waited_seconds"`
	Exit       int               `json:"exit"`
	Error      string            `json:"error,omitempty"`
}

func viewOfWait(src *place.Source, r lockgroup.Report, waited time.Duration, err error) waitView {
	v := waitView{
		Base: src.Place.Public(), Group: src.Place.Group, Open: err == nil || console.ExitCode(err) == console.ExitNotDone, OK: err == nil,
		Done: r.Done, Failed: len(r.Failed), Unfinished: max(len(r.Missing), r.Short), Failures: []show.Failure{}, UnfinishedJobs: append([]string{}, r.Missing...),
		OutputLost: show.OutputLostOf(r.Incomplete), Dead: show.Holdings(r.Crashed), Held: show.Holdings(r.Held), Waited: waited.Seconds(), Exit: console.ExitCode(err), Error: show.Explain(err),
	}
	for _, err := range r.Left {
		v.Warnings = append(v.Warnings, console.Line(err.Error()))
	}
	if r.Unread != nil {
		v.Unreadable = append(v.Unreadable, r.Unread.Error())
	}
	for _, f := range r.Failed {
		failed := show.FailureOf(f)
		if !f.Start.IsZero() {
			failed.End = f.Start.Add(f.Duration).UTC().Format(time.RFC3339)
		}
		v.Failures = append(v.Failures, failed)
	}
	return v
}

// print prints what is not done.
func (v waitView) print(e *Env, o *waitOptions) {
	for _, f := range show.AtMost(e.Env, v.Failures) {
		e.Say("%s", f.Sentence())
	}
	o.output.tell(e, &o.common, v.OutputLost)
	for _, l := range show.AtMost(e.Env, v.Dead) {
		e.Say("%s died, run by %s (%s)", show.Subject(l.Name), l.Holder(), l.Why)
	}
	for _, text := range show.AtMost(e.Env, v.Warnings) {
		e.Say("warning: the lock of a dead holder is still there: %s", text)
	}
	for _, text := range v.Unreadable {
		e.Say("warning: how the jobs ended is not known, only that no lock is held now: %s", text)
	}
	if v.Open {
		return
	}
	if len(v.UnfinishedJobs) > 0 {
		e.Say("%s without a final result: %s", plural(len(v.UnfinishedJobs), "job"), show.Listed(v.UnfinishedJobs))
	}
	if n := v.Unfinished - len(v.UnfinishedJobs); n > 0 {
		e.Say("%s missing", plural(n, "result"))
	}
	for _, l := range show.AtMost(e.Env, v.Held) {
		e.Say("%s is %s: %s (%s)", show.LockWords(l.Name), l.State, l.Holder(), l.Why)
	}
}
