package source

import (
	"context"

	"github.com/multilock/go/multilock/process"
)

// BatchJob is the batch system's job that a holder runs in, according to its environment. It is
// shown to users and passed to a Probe.
type BatchJob struct {
	// System is slurm, pbs, lsf or sge; ID is the system's ID of the job.
	System string `json:"system"`
	ID     string `json:"id"`
	// Cluster and Node are the system's own names, where it provides them.
	Cluster string `json:"cluster,omitempty"`
	Node    string `json:"node,omitempty"`
}

// BatchJobOf returns the batch job of a process with this environment, zero if it runs in none.
func BatchJobOf(getenv func(string) string) BatchJob {
	switch {
	case getenv("SLURM_JOB_ID") != "":
		return BatchJob{"slurm", getenv("SLURM_JOB_ID"), getenv("SLURM_CLUSTER_NAME"), getenv("SLURMD_NODENAME")}
	case getenv("PBS_JOBID") != "":
		return BatchJob{System: "pbs", ID: getenv("PBS_JOBID")}
	case getenv("LSB_JOBID") != "":
		return BatchJob{System: "lsf", ID: getenv("LSB_JOBID")}
	case getenv("JOB_ID") != "" && getenv("SGE_ROOT") != "": // JOB_ID alone is not specific to SGE
		return BatchJob{System: "sge", ID: getenv("JOB_ID"), Cluster: getenv("SGE_CELL")}
	}
	return BatchJob{}
}

// change applies a function to each text.
func (b BatchJob) change(by func(string) string) BatchJob {
	return BatchJob{by(b.System), by(b.ID), by(b.Cluster), by(b.Node)}
}

// Probe asks another authority, such as a batch system, about a holder whose heartbeat is overdue.
// Gone must mean proof that neither the holder nor any process of its job runs or will run again.
// Any other answer changes nothing. A Probe is called while a process waits for the lock, so it
// limits its own duration and caches answers.
type Probe func(ctx context.Context, r Record) process.Evidence
