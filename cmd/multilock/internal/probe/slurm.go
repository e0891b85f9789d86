package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// slurm asks Slurm's commands. The formats that they are asked for have nothing in them that
// a user can choose, such as a job's name.
type slurm struct {
	getenv func(name string) string
	output func(ctx context.Context, vars []string, args ...string) (string, error) // of a command
}

// The longest number of a job, name of a node, and list of nodes that are asked about.
const (
	maxNumber = 18
	maxNode   = 255
	maxNodes  = 64 << 10
)

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// isWord says that a text is one that a command cannot take for anything else: it begins with
// a letter or a digit, and has nothing in it but those and some more. (A regular expression
// would be compiled at each start of the program.)
func isWord(text string, longest int, chars string) bool {
	return text != "" && len(text) <= longest && strings.Contains(letters+digits, text[:1]) && strings.Trim(text, chars) == ""
}

// overStates are those of a job of which nothing runs, once its node has said so: it is
// COMPLETING until then. NODE_FAIL is none: such a node may only be cut off from Slurm.
func overStates() []string {
	return []string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED"}
}

// upStates are those of a node that answers. A job on a node that is down counts as over
// without anybody knowing; a node is drained, too, when processes could not be killed.
func upStates() []string { return []string{"idle", "mixed", "allocated", "planned", "reserved"} }

func (s slurm) ask(ctx context.Context, r source.Record) (string, error) {
	b := r.Holder.Batch
	if err := s.check(b); err != nil {
		return "", err
	}
	state, nodes, err := s.job(ctx, b.ID)
	switch {
	case err != nil:
		return "", err
	case !slices.Contains(overStates(), state):
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

// check finds what Slurm cannot be asked about. A process without a node's name was not
// started by that node: with salloc it runs where nobody ends it.
func (s slurm) check(b source.BatchJob) error {
	here := s.getenv("SLURM_CLUSTER_NAME")
	switch {
	case b.System == "":
		return errors.New("it runs in no job of a batch system, as far as its record tells")
	case b.System != Slurm:
		return fmt.Errorf("its job is one of %s", b.System)
	case !isWord(b.ID, maxNumber, digits) || !isWord(b.Node, maxNode, letters+digits+"._-"):
		return fmt.Errorf("job %q on node %q is none that a node of Slurm has started", b.ID, b.Node)
	case here != "" && b.Cluster != "" && here != b.Cluster:
		return fmt.Errorf("its job is one of the cluster %s, and this one is %s", b.Cluster, here)
	}
	return nil
}

// job is what becomes of a job, and on which nodes. For a job array all of its tasks are
// told; this one is the one with the number.
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
			return "", "", fmt.Errorf("squeue was asked for number, state and nodes of job %s, and says %q", id, source.Shorten(line, 200))
		}
	}
	if found != 1 || state == "" {
		return "", "", fmt.Errorf("squeue lists %d jobs of the number %s, and not one with its state", found, id)
	}
	return state, nodes, nil
}

// ranOn makes sure that it is this job, and not one of the same number elsewhere.
func (s slurm) ranOn(ctx context.Context, b source.BatchJob, nodes string) error {
	if !isWord(nodes, maxNodes, letters+digits+"._-,[]") {
		return fmt.Errorf("job %s ran on no node that squeue tells (%q)", b.ID, nodes)
	}
	out, err := s.output(ctx, nil, "scontrol", "show", "hostnames", nodes)
	if err == nil && !slices.ContainsFunc(slices.Collect(strings.Lines(out)), func(line string) bool { return strings.TrimSpace(line) == b.Node }) {
		err = fmt.Errorf("job %s ran on %s, and the holder on %s: it is another job", b.ID, nodes, b.Node)
	}
	return err
}

// up makes sure that the node is in touch with Slurm: what it says of its jobs is so. A node
// has a line for each partition.
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
			return fmt.Errorf("sinfo was asked for the state of node %s, and says %q", node, source.Shorten(line, 200))
		case !slices.Contains(upStates(), fields[1]):
			return fmt.Errorf("its job is over as far as Slurm knows, but node %s is %s: what runs there is not known", node, fields[1])
		}
		found = true
	}
	if !found {
		return fmt.Errorf("sinfo tells nothing about node %s", node)
	}
	return nil
}
