package source

import (
	"context"

	"github.com/multilock/go/multilock/process"
)

// BatchJob is the job of a batch system in which a holder runs, as its environment tells it.
// It is for people, and for a Probe.
type BatchJob struct {
	// System is slurm, pbs, lsf or sge, ID its number for the job.
	System string `json:"system"`
	ID     string `json:"id"`
	// Cluster and Node are the system's own names for where it runs, as far as it tells them.
	Cluster string `json:"cluster,omitempty"`
	Node    string `json:"node,omitempty"`
}

// BatchJobOf is the one that a process with this environment runs in, zero if that is none.
func BatchJobOf(getenv func(string) string) BatchJob {
	switch {
	case getenv("SLURM_JOB_ID") != "":
		return BatchJob{"slurm", getenv("SLURM_JOB_ID"), getenv("SLURM_CLUSTER_NAME"), getenv("SLURMD_NODENAME")}
	case getenv("PBS_JOBID") != "":
		return BatchJob{System: "pbs", ID: getenv("PBS_JOBID")}
	case getenv("LSB_JOBID") != "":
		return BatchJob{System: "lsf", ID: getenv("LSB_JOBID")}
	case getenv("JOB_ID") != "" && getenv("SGE_ROOT") != "": // others have a JOB_ID, too
		return BatchJob{System: "sge", ID: getenv("JOB_ID"), Cluster: getenv("SGE_CELL")}
	}
	return BatchJob{}
}

// change has each text changed.
func (b BatchJob) change(by func(string) string) BatchJob {
	return BatchJob{by(b.System), by(b.ID), by(b.Cluster), by(b.Node)}
}

// Probe asks somebody else, such as a batch system, about the holder of a lock that has been
// silent for longer than it should. Gone is believed: it means proof that neither the holder
// nor anything of its job runs, or will run again. Any other answer changes nothing. It is
// asked while somebody waits, so it has an end of its own, and does not ask for each call.
type Probe func(ctx context.Context, r Record) process.Evidence
