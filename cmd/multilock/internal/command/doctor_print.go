package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/jointest"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/multilock/source"
)

// assessment is the assessment at the top of doctor's report.
type assessment struct {
	code  int
	text  string
	shown int // index of the finding that is in the text, or -1
}

// failure returns the error for a caller that does not read the report.
func (v assessment) failure() error {
	if v.code == console.ExitOK {
		return nil
	}
	return &console.CodedError{Code: v.code, Text: v.text}
}

func (r *DoctorReport) assessment() assessment {
	if i := slices.IndexFunc(r.Findings, isUnusable); i >= 0 {
		f := r.Findings[i]
		text := "Locks do not work here: "
		switch {
		case r.unshown:
			text = "Locks were not tested between hosts: "
		case r.Join != nil:
			text = "Do not use locks here: "
		}
		return assessment{console.ExitFailure, text + f.Text, i}
	}
	between := r.between()
	warnings, last := 0, 0
	for i, f := range r.Findings {
		if f.Severity == source.SeverityWarning {
			warnings, last = warnings+1, i
		}
	}
	switch {
	case warnings == 1:
		return assessment{console.ExitNotDone, "Locks work here" + between + ", with a warning: " + r.Findings[last].Text, last}
	case warnings > 1:
		return assessment{console.ExitNotDone, fmt.Sprintf("Locks work here%s, with %d warnings.", between, warnings), -1}
	case between == "":
		return assessment{console.ExitOK, "Locks work here, as far as one host can test.", -1}
	}
	return assessment{console.ExitOK, "Locks are safe here" + between + ".", -1}
}

// between names the hosts that tested locks together, "" if this host was alone.
func (r *DoctorReport) between() string {
	if r.Join == nil {
		return ""
	}
	hosts := []string{r.Host}
	for _, h := range r.Join.Hosts {
		if h.End == jointest.EndComplete && !slices.Contains(hosts, h.Host) {
			hosts = append(hosts, h.Host)
		}
	}
	last := len(hosts) - 1
	if last == 0 {
		return ""
	}
	return ", between " + strings.Join(hosts[:last], ", ") + " and " + hosts[last]
}

// severities have the printed words, in the order in which findings are printed.
var severities = []struct {
	source.Severity
	word string
}{{source.SeverityUnusable, "critical"}, {source.SeverityWarning, "warning"}, {source.SeverityFine, "ok"}}

// print prints the assessment, then the findings, then the advice.
func (r *DoctorReport) print(e *Env, o *doctorOptions, v assessment) error {
	if o.Quiet && v.code == console.ExitOK {
		return nil
	}
	var list, advice strings.Builder
	advised := map[string]bool{}
	for _, s := range severities {
		for i, f := range r.Findings {
			if f.Severity != s.Severity || o.Quiet && f.Severity == source.SeverityFine {
				continue
			}
			if i != v.shown {
				list.WriteString(options.Item(s.word, 9, f.Subject+": "+f.Text))
			}
			if f.Advice != "" && !advised[f.Advice] {
				advised[f.Advice] = true
				advice.WriteString(options.Item("-", 2, f.Advice))
			}
		}
	}
	if v.code == console.ExitOK && r.Join == nil && r.joinable {
		advice.WriteString(options.Item("-", 2, "to test locks between hosts, run this on each of them at the same time:"))
		advice.WriteString("    " + o.Command("doctor", "--join", "--expect", "2") + "\n")
	}
	text := options.Wrap(v.text) + "\n"
	for _, part := range []struct{ heading, lines string }{
		{r.heading(), list.String()}, {"What to do:\n", advice.String()}, {fmt.Sprintf("Guarantees of %s:\n", r.where), r.guarantees(o.Verbose)},
	} {
		if part.lines != "" {
			text += "\n" + part.heading + part.lines
		}
	}
	return e.Print("%s", text)
}

func (r *DoctorReport) heading() string {
	if r.Host == "" {
		return fmt.Sprintf("Checks of %s:\n", r.where)
	}
	return fmt.Sprintf("Checks of %s on %s:\n", r.where, r.Host)
}

// traitWords are the field's terms for traits with names of this program's own.
var traitWords = map[source.Trait]string{
	source.TraitSafeSilence: "self-fencing", source.TraitNamedHolder: "holder info", source.TraitDeadProcess: "dead process detection",
	source.TraitBreakByEvidence: "takeover from the dead", source.TraitBreakByForce: "forced break", source.TraitPromptRelease: "immediate release",
	source.TraitJobMark: "job tracking", source.TraitFenceNumbers: "fencing tokens", source.TraitOneClock: "one clock for all",
	source.TraitCheapBarrier: "O(1) barrier", source.TraitManifest: "shared job list",
}

func (r *DoctorReport) guarantees(verbose bool) string {
	var b strings.Builder
	for _, p := range r.Guarantees {
		kept := "?"
		if p.Kept != nil {
			kept = map[bool]string{true: "yes", false: "no"}[*p.Kept]
		}
		if verbose {
			b.WriteString(options.Item(fmt.Sprintf("%-22s  %s", cmp.Or(traitWords[p.Trait], string(p.Trait)), kept), 29, cmp.Or(p.Why, "-")))
		}
	}
	return b.String()
}
