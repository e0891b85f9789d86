package command

import (
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/probe"
	"github.com/multilock/go/multilock/source"
)

// probing is the option of commands that take locks which others may have left behind.
type probing struct{ Probe string }

const probeHelp = `With --probe a silent holder may be found dead before its time to live has passed:
when it has missed a sign of life, and the probe says that it is gone. "--probe slurm"
asks Slurm about the job that the holder's record names: it has to be over, on the
holder's node, and that node up and in touch with Slurm. Anything else is a COMMAND
for /bin/sh: it ends with 0 and prints nothing but "gone" if it is certain that nothing
of the holder runs or will run again, and "alive" if it is not. "multilock help
environment" lists the variables that tell it about the holder. An error, another answer, or none within ten seconds proves nothing.
A process that gets away from its batch job, as where Slurm tracks no cgroups, lives on
unseen: with --probe another one may then run beside it.`

// prober returns the probe of silent holders, nil without --probe. It calls say with the reason if
// an answer is inconclusive.
func (p *probing) prober(e *Env, src *place.Source, command string, say func(string, ...any)) (source.Probe, error) {
	if p.Probe == "" {
		return nil, nil
	}
	if _, asks := src.Locks.(source.Probing); !asks {
		return nil, console.Usagef(command, "--probe: this source asks nobody about a silent holder; locks in a directory do")
	}
	return probe.New(p.Probe, place.JobEnviron(e.Environ()), src.Self, say).Ask, nil
}
