package cloudshell

import (
	"context"
	"fmt"

	"github.com/multilock/go/multilock"
)

var (
	_ multilock.Describer = (*Source)(nil)
	_ multilock.Examiner  = (*Source)(nil)
	_ multilock.Paced     = (*Source)(nil)
)

// Promises implements multilock.Describer. Before anything was asked of the server
// the model is taken for one with owners.
func (s *Source) Promises() []multilock.Promise {
	s.mu.Lock()
	plain := s.mode == plainMode
	s.mu.Unlock()
	const noOwner = "the service model has no attribute for the owner, so a lock is there or not, and that is all"
	says := map[multilock.Trait]string{
		multilock.SafeSilence:     "a holder stops believing in its lock after four fifths of its TTL without a confirmed sign of life",
		multilock.DeadProcess:     "on the holder's own host, and in its own pid namespace; from another host after the TTL",
		multilock.BreakByEvidence: "when its process is gone, or after its TTL in silence and a while of watching; what a script took only by force",
		multilock.FenceNumbers:    "the turns of the lock's register, which only grow unless somebody deletes them all",
		multilock.Results:         "services beside the lock, named by its register; they end with the reservation",
		multilock.Manifest:        "a digest of it: hosts learn whether they mean the same list, not how two differ",
		multilock.History:         "the last result of each job, and nothing else",
	}
	var promises []multilock.Promise
	for _, trait := range multilock.Traits() {
		p := multilock.Promise{Trait: trait, Kept: !plain, Why: says[trait]}
		if plain {
			p.Why = noOwner
		}
		promises = append(promises, alike(p))
	}
	return promises
}

// alike has what is so with any model.
func alike(p multilock.Promise) multilock.Promise {
	switch p.Trait {
	case multilock.OneClock:
		p.Kept, p.Why = true, "the CloudShell server's, by GetServerDateAndTime"
	case multilock.CheapBarrier:
		p.Kept, p.Why = true, "one listing of the reservation's services, past the server's cache"
	case multilock.PromptRelease:
		p.Kept, p.Why = true, "its service is removed, and the next attempt takes it"
	case multilock.JobMark:
		p.Kept, p.Why = false, "there is no room for a process group in the owner's attribute; a job's processes are known by their environment alone"
	}
	return p
}

// Examine implements multilock.Examiner. It changes nothing.
func (s *Source) Examine(ctx context.Context) []multilock.Finding {
	findings := []multilock.Finding{s.examineConnection()}
	services, err := s.list(ctx)
	if err != nil {
		return append(findings, multilock.Finding{Subject: "reservation", Severity: multilock.Unusable, Text: err.Error()})
	}
	findings = append(findings, multilock.Finding{Subject: "reservation", Severity: multilock.Fine, Text: fmt.Sprintf("it is there, with %d services", len(services))})
	return append(findings, s.examineModel(ctx), s.examineClock(ctx))
}

func (s *Source) examineConnection() multilock.Finding {
	f := multilock.Finding{Subject: "connection", Severity: multilock.Fine, Text: "HTTPS, and the server's certificate is verified"}
	switch {
	case s.opt.Scheme == schemeHTTP:
		f = multilock.Finding{Subject: f.Subject, Severity: multilock.Warning, Text: "HTTP: whoever is in between can read the password and the token", Advice: "have HTTPS set up on the server, and add scheme=https to the URL"}
	case s.opt.Insecure:
		f = multilock.Finding{Subject: f.Subject, Severity: multilock.Warning, Text: "HTTPS, but any certificate is accepted", Advice: "name the server's certificate with cafile=FILE instead of insecure=true"}
	}
	return f
}

func (s *Source) examineModel(ctx context.Context) multilock.Finding {
	plain, err := s.plain(ctx)
	f := multilock.Finding{Subject: "service model", Severity: multilock.Fine, Text: fmt.Sprintf("%q has the attribute %q, or this user cannot see it", s.opt.Model, s.opt.Attribute)}
	switch {
	case err != nil:
		f.Severity, f.Text = multilock.Unusable, err.Error()
	case plain:
		f.Severity, f.Text = multilock.Warning, fmt.Sprintf("%q has no attribute %q: nobody can tell whose a lock is, and whether its holder lives", s.opt.Model, s.opt.Attribute)
		f.Advice = "add that attribute to the model; scripts that keep to the convention do not mind"
	}
	return f
}

func (s *Source) examineClock(ctx context.Context) multilock.Finding {
	if _, err := s.Now(ctx); err != nil {
		return multilock.Finding{
			Subject: "clock", Severity: multilock.Warning, Text: "the server does not tell the time: " + err.Error(),
			Advice: "a dead holder on another host is noticed by those who wait for its whole TTL, and by nobody else",
		}
	}
	return multilock.Finding{Subject: "clock", Severity: multilock.Fine, Text: "the server tells the time"}
}
