package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// slurm runs Slurm's commands. Their output formats exclude text that users can choose, such as job names.
type slurm struct {
	getenv func(name string) string
	output func(ctx context.Context, vars []string, args ...string) (string, error) // runs a command
}

// The maximum lengths of a job number, node name and node list.
const (
	maxNumber = 18
	maxNode   = 255
	maxNodes  = 64 << 10
)

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// isWord reports whether a text is a safe argument: it begins with a letter or a digit, and consists of
// chars. (A regular expression would be compiled at each start of the program.)
func isWord(text string, longest int, chars string) bool {
	return text != "" && len(text) <= longest && strings.Contains(letters+digits, text[:1]) && strings.Trim(text, chars) == ""
}

// overStates are the states of a job whose node has confirmed that it has no processes: until then it is
// COMPLETING. NODE_FAIL is not one of them, because the node may only be disconnected from Slurm.
var overStates = []string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED"}

// upStates are the states of a node that responds. For a node that is down, Slurm considers a job ended
// without proof. It drains a node on which processes could not be killed.
var upStates = []string{"idle", "mixed", "allocated", "planned", "reserved"}

func (s slurm) ask(ctx context.Context, r source.Record) (string, error) {
	b := r.Holder.Batch
	if err := s.check(b); err != nil {
		return "", err
	}
	state, nodes, err := s.job(ctx, b.ID)
	switch {
	case err != nil:
		return "", err
	case !slices.Contains(overStates, state):
		return "", &alive{fmt.Sprintf("Slurm job %s is %s", b.ID, state)}
	}
	if err := s.ranOn(ctx, b, nodes); err != nil {
		return "", err
	}
	if err := s.up(ctx, b.Node); err != nil {
		return "", err
	}
	return fmt.Sprintf("its Slurm job %s is over (%s)", b.ID, state), nil
}

// check rejects holders that Slurm cannot answer for. A process without a node name was not started by a
// node: after salloc it runs on a host where Slurm does not end it.
func (s slurm) check(b source.BatchJob) error {
	here := s.getenv("SLURM_CLUSTER_NAME")
	switch {
	case b.System == "":
		return errors.New("its record names no job of a batch system")
	case b.System != Slurm:
		return fmt.Errorf("its batch system is %s", b.System)
	case !isWord(b.ID, maxNumber, digits) || !isWord(b.Node, maxNode, letters+digits+"._-"):
		return fmt.Errorf("job %q on node %q was not started by a node of Slurm", b.ID, b.Node)
	case here != "" && b.Cluster != "" && here != b.Cluster:
		return fmt.Errorf("its job is of the cluster %s, and this one is %s", b.Cluster, here)
	}
	return nil
}

// job returns the state of a job and its nodes. For a job array squeue lists all tasks, of which one has the
// number.
func (s slurm) job(ctx context.Context, id string) (state, nodes string, err error) {
	out, err := s.output(ctx, nil, "squeue", "-h", "-t", "all", "-j", id, "-o", "%A %T %N")
	if err != nil {
		return "", "", err
	}
	found := 0
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != id {
			continue
		}
		found++
		switch len(fields) {
		case 2:
			state = fields[1]
		case 3:
			state, nodes = fields[1], fields[2]
		default:
			return "", "", fmt.Errorf("squeue lists job %s in an unknown format: %q", id, source.Shorten(line, 200))
		}
	}
	if found != 1 || state == "" {
		return "", "", fmt.Errorf("squeue lists %d jobs with the number %s, instead of one with a state", found, id)
	}
	return state, nodes, nil
}

// ranOn verifies that the job is the holder's, not another job with the same number.
func (s slurm) ranOn(ctx context.Context, b source.BatchJob, nodes string) error {
	if !isWord(nodes, maxNodes, letters+digits+"._-,[]") {
		return fmt.Errorf("job %s has no nodes in squeue (%q)", b.ID, nodes)
	}
	out, err := s.output(ctx, nil, "scontrol", "show", "hostnames", nodes)
	if err == nil && !slices.ContainsFunc(slices.Collect(strings.Lines(out)), func(line string) bool { return strings.TrimSpace(line) == b.Node }) {
		err = fmt.Errorf("job %s ran on %s, and the holder on %s: it is another job", b.ID, nodes, b.Node)
	}
	return err
}

// up verifies that the node is connected to Slurm, so that the state of its jobs is current. sinfo lists a
// node once per partition.
func (s slurm) up(ctx context.Context, node string) error {
	out, err := s.output(ctx, nil, "sinfo", "-h", "-N", "-n", node, "-o", "%N %T")
	if err != nil {
		return err
	}
	found := false
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			continue
		case len(fields) != 2 || fields[0] != node:
			return fmt.Errorf("sinfo lists node %s in an unknown format: %q", node, source.Shorten(line, 200))
		case !slices.Contains(upStates, fields[1]):
			return fmt.Errorf("its job is over for Slurm, but node %s is %s, and may still run it", node, fields[1])
		}
		found = true
	}
	if !found {
		return fmt.Errorf("sinfo does not list node %s", node)
	}
	return nil
}
