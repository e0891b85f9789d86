package command

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type metricsOptions struct {
	common
	within   console.Duration
	textfile string
}

const metricsName = "metrics"

// Metrics prints metrics of jobs for Prometheus.
func Metrics(e *Env) *cli.Command {
	o := &metricsOptions{}
	return &cli.Command{
		Name:      metricsName,
		ArgsUsage: "[options]",
		Usage:     "print numbers about jobs for Prometheus and node_exporter",
		Description: `Prints runs, failures, durations, waits, lost locks, missed ticks, and what is
overdue, for Prometheus. Run it on one host: all hosts print the same.

   * * * * *  multilock -d /shared metrics --textfile /var/lib/node/jobs.prom`,
		Flags:  e.Flags("metrics", options.Values{"textfile": &o.textfile, "within": &o.within}),
		Action: action(e, &o.common, nil, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *metricsOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	m := meter{src: src, counts: newCounts(src.Place.Group), expected: lockgroup.Expectation{Within: o.within.Value}}
	if err := m.read(ctx); err != nil {
		return err
	}
	text := show.Exposition(m.families(time.Now()))
	for _, what := range m.missing {
		e.Say("warning: %s", what)
	}
	if o.textfile == "" {
		if err := console.Pass(e.Stdout, text); err != nil {
			return fmt.Errorf("print the metrics: %w", err)
		}
		return nil
	}
	if err := outfile.Replace(o.textfile, text); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// meter reads what the metrics are computed from.
type meter struct {
	src      *place.Source
	expected lockgroup.Expectation
	counts   *counts
	jobs     []show.OverdueJob
	held     int
	locks    bool // whether held is known
	list     *survey.Progress
	missing  []string
}

// read reads the history, the results and the names of held locks, if the source has them.
func (m *meter) read(ctx context.Context) error {
	chronicle, hasHistory := source.Ability[source.Journal](m.src.Locks, source.TraitHistory)
	if hasHistory {
		if err := m.count(ctx, chronicle); err != nil {
			return err
		}
	}
	names, err := bounded.Call(ctx, m.src.Locks.Names)
	m.held, m.locks = len(names), err == nil
	ledger, hasResults := source.Ability[source.Ledger](m.src.Locks, source.TraitResults)
	switch {
	case !hasResults && !hasHistory:
		return m.src.Lacking(metricsName, source.TraitHistory)
	case !hasResults:
		return nil
	}
	list, err := survey.OpenList(ctx, m.src.Locks)
	if err != nil {
		m.missing = append(m.missing, console.Line(err.Error()))
	}
	for _, name := range names {
		list.Held(name, 0)
	}
	w := watcher{src: m.src, expected: m.expected, list: list}
	if err := w.look(ctx); err != nil {
		return err
	}
	m.jobs, m.missing = w.jobs, append(m.missing, w.missing...)
	survey.Results(ctx, ledger, w.chunks, survey.Summaries, func(_ int, r multilock.Result) { list.Result(r) })
	m.list = list.Progress()
	return ctx.Err()
}

func (m *meter) count(ctx context.Context, chronicle source.Journal) error {
	left := func(what string) { m.missing = append(m.missing, what) }
	for e, err := range reportLeftOut(chronicle.History(ctx, time.Time{}), left) {
		if err != nil {
			return err
		}
		m.counts.add(e)
	}
	if m.counts.crowded {
		m.missing = append(m.missing, fmt.Sprintf("there are more than %d names of jobs: the others are added up under the name %s", maxNames, otherNames))
	}
	if m.counts.overfull {
		m.missing = append(m.missing, "the history names more acquisitions and parts of lists than fit into memory: runs of the others are counted wrongly, or not at all")
	}
	return nil
}

func (m *meter) families(now time.Time) []show.Family {
	families := append(m.counts.families(), m.jobFamilies()...)
	group := map[string]string{"group": m.src.Place.Group}
	if m.locks {
		families = append(families, show.Family{
			Name: "multilock_locks_held", Type: "gauge", Help: "Locks of the group that are held, or whose holder has died.",
			Samples: []show.Sample{{Labels: group, Value: float64(m.held)}},
		})
	}
	if p := m.list; p != nil {
		family := show.Family{Name: "multilock_list_jobs", Type: "gauge", Help: "Jobs of the group's list, each in one state."}
		for _, one := range []struct {
			state string
			n     int
		}{{"done", p.Done}, {"failed", p.Failed}, {"retry", p.Retry}, {"unknown", p.Unknown}, {"claimed", p.Claimed}, {"pending", p.Pending}} {
			labels := map[string]string{"group": m.src.Place.Group, "state": one.state}
			family.Samples = append(family.Samples, show.Sample{Labels: labels, Value: float64(one.n)})
		}
		families = append(families, family)
	}
	return append(families,
		show.Family{
			Name: "multilock_unreadable", Type: "gauge", Help: "How many things could not be read, so that these numbers lack them.",
			Samples: []show.Sample{{Labels: group, Value: float64(len(m.missing))}},
		},
		show.Family{
			Name: "multilock_metrics_timestamp_seconds", Type: "gauge", Help: "When these numbers were made, by the clock of the host that made them.",
			Samples: []show.Sample{{Labels: group, Value: unixSeconds(now)}},
		})
}

// jobFamilies returns the metrics of jobs with --every or --once. Jobs that run only once are
// included until they succeed.
func (m *meter) jobFamilies() []show.Family {
	severity := show.Family{Name: "multilock_severity", Type: "gauge", Help: "The status of a job in multilock overdue: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN."}
	late := show.Family{Name: "multilock_late", Type: "gauge", Help: "1 if a job is late, else 0."}
	due := show.Family{Name: "multilock_due_timestamp_seconds", Type: "gauge", Help: "When a job is to run next, or should have."}
	well := show.Family{Name: "multilock_last_success_timestamp_seconds", Type: "gauge", Help: "When a job last succeeded."}
	shown := map[string]bool{otherNames: true} // one value for several jobs would be meaningless
	for _, job := range m.jobs {
		labels := m.counts.labels(m.counts.label(job.Name))
		if name := labels["name"]; shown[name] {
			if name != otherNames {
				m.missing = append(m.missing, fmt.Sprintf("job %q looks like another one in the metrics, and is left out", job.Name))
			}
			continue
		}
		shown[labels["name"]] = true
		add := func(f *show.Family, value float64) {
			f.Samples = append(f.Samples, show.Sample{Labels: labels, Value: value})
		}
		add(&severity, float64(job.Severity.Code()))
		add(&late, job.IsLate())
		if !job.Due.IsZero() {
			add(&due, unixSeconds(job.Due))
		}
		if !job.Succeeded.IsZero() {
			add(&well, unixSeconds(job.Succeeded))
		}
	}
	return []show.Family{severity, late, due, well}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// jobLabel is the name that a lock's jobs are counted under: all slots of a name share it, and all
// chunks share chunkNames.
func jobLabel(lock string) string {
	if _, chunk := joblist.ParseChunkName(lock); chunk {
		return chunkNames
	}
	return jobNamed(lock)
}
