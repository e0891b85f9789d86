package batch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// Needs are each job's share of its host's budget, from job From on. Jobs before the first Needs take
// one processor and no memory.
type Needs struct {
	From   int   // number of the first job
	CPUs   int   // of Options.Workers; 1 if 0
	Memory int64 // of Options.Memory, in bytes
}

// budget is a host's capacity for jobs, and how much of it is in use. A job that does not fit also
// blocks all jobs behind it: smaller jobs could otherwise keep it waiting for ever.
type budget struct {
	needs  []Needs
	cpus   int
	memory int64 // 0 for no limit

	usedCPUs   int
	usedMemory int64
}

// needsOf returns the needs of a job.
func (g *budget) needsOf(job int) Needs {
	after, _ := slices.BinarySearchFunc(g.needs, job+2, func(n Needs, number int) int { return n.From - number })
	if after == 0 {
		return Needs{CPUs: 1}
	}
	return g.needs[after-1]
}

// fits reports whether a job could begin now.
func (g *budget) fits(job int) bool {
	n := g.needsOf(job)
	return g.usedCPUs+n.CPUs <= g.cpus && (g.memory == 0 || g.usedMemory+n.Memory <= g.memory)
}

func (g *budget) spend(job int) {
	n := g.needsOf(job)
	g.usedCPUs, g.usedMemory = g.usedCPUs+n.CPUs, g.usedMemory+n.Memory
}

func (g *budget) regain(job int) {
	n := g.needsOf(job)
	g.usedCPUs, g.usedMemory = g.usedCPUs-n.CPUs, g.usedMemory-n.Memory
}

// wanting returns how many more small jobs could begin now.
func (q *schedule) wanting() int {
	if len(q.ready) > 0 && !q.budget.fits(q.ready[0].job) {
		return 0
	}
	return min(q.idle, q.budget.cpus-q.budget.usedCPUs)
}

// checkNeeds rejects jobs that could never run here, and drops redundant needs.
func (o *Options) checkNeeds(jobs []Job) error {
	last, kept := Needs{CPUs: 1}, []Needs(nil)
	before := 0
	for i, n := range o.Needs {
		n.CPUs = max(n.CPUs, 1)
		switch {
		case n.From <= before || n.Memory < 0 || o.Needs[i].CPUs < 0:
			return &source.InvalidError{What: "needs", Got: fmt.Sprintf("%+v", n), Why: "must not be negative, and each begins behind the one before"}
		case n.From > len(jobs):
			continue
		case n.CPUs > o.Workers || o.Memory > 0 && n.Memory > o.Memory:
			return &source.InvalidError{What: "job", Got: jobs[n.From-1].Name, Why: "it needs more than there is here: " + n.text()}
		}
		before = n.From
		if n.CPUs != last.CPUs || n.Memory != last.Memory {
			kept, last = append(kept, n), n
		}
	}
	o.Needs = kept
	return nil
}

func (n Needs) text() string {
	return "cpus=" + strconv.Itoa(n.CPUs) + " mem=" + strconv.FormatInt(n.Memory, 10)
}

// needsText encodes needs for the head of a manifest.
func needsText(needs []Needs) string {
	var text strings.Builder
	for _, n := range needs {
		fmt.Fprintf(&text, "%s %d %s", needsHead, n.From, n.text())
	}
	return text.String()
}

const needsHead = "#needs from"
