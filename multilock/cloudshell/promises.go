package cloudshell

import (
	"context"
	"fmt"

	"github.com/multilock/go/multilock/source"
)

var (
	_ source.Describer = (*Source)(nil)
	_ source.Examiner  = (*Source)(nil)
	_ source.Paced     = (*Source)(nil)
)

// Promises implements source.Describer. What depends on the service model is left out
// before that was looked at: see Ready.
func (s *Source) Promises() []source.Promise {
	promises := alike()
	switch s.known() {
	case ownedMode:
		promises = append(promises, owned()...)
	case plainMode:
		for _, p := range owned() {
			promises = append(promises, source.Lacks(p.Trait, s.noOwner()+", so a lock is there or not, and that is all"))
		}
	}
	return promises
}

// owned are the promises that need a model with owners.
func owned() []source.Promise {
	return []source.Promise{
		source.Keeps(source.TraitSafeSilence, "a holder stops believing in its lock after four fifths of its TTL without a confirmed sign of life"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and the beginning of its command; what a script took names nobody, or the owner that it wrote"),
		source.Keeps(source.TraitDeadProcess, "on the holder's own host, and in its own pid namespace; from another host after the TTL"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or after its TTL in silence and a while of watching; what a script took only by force"),
		source.Keeps(source.TraitFenceNumbers, "the turns of the lock's register, which only grow unless somebody deletes them all"),
		source.Keeps(source.TraitResults, "services beside the lock, named by its register; they end with the reservation"),
		source.Keeps(source.TraitManifest, "a digest of it: hosts learn whether they mean the same list, not how two differ"),
		source.Keeps(source.TraitHistory, "the last result of each job, and nothing else"),
	}
}

// noOwner says what is missing where locks are plain.
func (s *Source) noOwner() string {
	return fmt.Sprintf("the service model %q has no attribute %q", s.opt.Model, s.opt.Attribute)
}

// alike are the promises that are the same with any model.
func alike() []source.Promise {
	return []source.Promise{
		source.Keeps(source.TraitBreakByForce, "its services are removed; the holder learns it at its next sign of life"),
		source.Keeps(source.TraitOneClock, "the CloudShell server's, by GetServerDateAndTime"),
		source.Keeps(source.TraitCheapBarrier, "one listing of the reservation's services, past the server's cache"),
		source.Keeps(source.TraitPromptRelease, "its service is removed, and the next attempt takes it"),
		source.Lacks(source.TraitQueue, "whoever asks first has it"),
		source.Lacks(source.TraitRunHistory, "there is no place for it: of jobs that leave a result (run --once, batch) the last one is known, of others nothing"),
		source.Lacks(source.TraitJobMark, "there is no room for a process group in the owner's attribute; a job's processes are known by their environment alone"),
	}
}

// Examine implements source.Examiner. It changes nothing.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	findings := []source.Finding{s.examineConnection()}
	services, err := s.list(ctx)
	if err != nil {
		return append(findings, source.Unusable("reservation", err.Error(), ""))
	}
	findings = append(findings, source.Fine("reservation", fmt.Sprintf("it is there, with %d services", len(services))), s.examineModel(ctx), s.examineClock(ctx))
	if s.known() != unknownMode {
		findings = append(findings, s.examineDeath())
	}
	return append(findings, source.Fine("scripts", scriptsNever))
}

// scriptsNever says what to expect of those who keep to the published convention.
const scriptsNever = "those of the published convention never break a lock: they try for 200 to 500 seconds, and then go on WITHOUT it, " +
	"and remove whatever has its alias in the end; a holder here notices that at its next sign of life"

// examineDeath says what a killed holder costs.
func (s *Source) examineDeath() source.Finding {
	if s.known() == plainMode {
		return source.Warning("killed holder", "its lock stays until somebody removes it: nobody can tell that its holder is dead",
			"break --force NAME, or delete the service in the portal; with the attribute in the model this is done by itself")
	}
	return source.Fine("killed holder", "its lock is taken over at once on its own host, and by other hosts when its TTL has passed (run --ttl, 2m)")
}

func (s *Source) examineConnection() source.Finding {
	switch {
	case s.opt.Scheme == schemeHTTP:
		return source.Warning("connection", "HTTP: whoever is in between can read the password and the token", "have HTTPS set up on the server, and leave scheme=http out of the URL")
	case s.opt.Insecure:
		return source.Warning("connection", "HTTPS, but any certificate is accepted", "name the server's certificate with cafile=FILE instead of insecure=true")
	}
	return source.Fine("connection", "HTTPS, and the server's certificate is verified")
}

func (s *Source) examineModel(ctx context.Context) source.Finding {
	const subject = "service model"
	plain, err := s.plain(ctx)
	switch {
	case err != nil:
		return source.Unusable(subject, err.Error(), "")
	case s.isUnseen():
		return source.Fine(subject, s.noModel()+"; users who are no administrators may not see it, and can use it all the same")
	case plain:
		return source.Warning(subject, s.noOwner()+": nobody can tell whose a lock is, and whether its holder lives",
			"add that attribute to the model (https://github.com/multilock/go/blob/main/docs/cloudshell.md has it as a package); scripts that keep to the convention do not mind")
	}
	return source.Fine(subject, fmt.Sprintf("%q has the attribute %q", s.opt.Model, s.opt.Attribute))
}

func (s *Source) examineClock(ctx context.Context) source.Finding {
	if _, err := s.Now(ctx); err != nil {
		return source.Warning("clock", "the server does not tell the time: "+err.Error(),
			"a dead holder on another host is noticed by those who wait for its whole TTL, and by nobody else")
	}
	return source.Fine("clock", "the server tells the time")
}
