package batch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock/source"
)

func (o *Options) plan() lockgroup.Plan {
	return lockgroup.Plan{Retries: o.Retries, RetryOn: o.RetryOn, RetryDelay: o.RetryDelay}
}

func (o *Options) check(jobs []Job) error {
	if o.Workers < 0 {
		return &source.InvalidError{What: "workers", Got: strconv.Itoa(o.Workers), Why: "must be positive"}
	}
	if o.Delay < 0 {
		return &source.InvalidError{What: "delay", Got: o.Delay.String(), Why: "must not be negative"}
	}
	if o.Poll < 0 {
		return &source.InvalidError{What: "poll", Got: o.Poll.String(), Why: "must be positive"}
	}
	if err := o.plan().Check(); err != nil {
		return err
	}
	if err := checkNames(jobs); err != nil {
		return err
	}
	if err := errors.Join(o.checkBarriers(len(jobs)), o.checkNeeds(jobs), o.checkRedo(jobs)); err != nil {
		return err
	}
	if strings.ContainsAny(o.Shell, "#\t\n") {
		return &source.InvalidError{What: "shell", Got: o.Shell, Why: "must not contain #, a tab or a newline"}
	}
	return o.Halt.check()
}

// checkNames rejects reserved and duplicate names. For a sorted list it needs no memory.
func checkNames(jobs []Job) error {
	grow := true
	for i, job := range jobs {
		grow = grow && (i == 0 || jobs[i-1].Name < job.Name)
		if _, chunk := joblist.ParseChunkName(job.Name); chunk {
			return &source.InvalidError{What: "job", Got: job.Name, Why: "chunks of the list are called so; choose another name"}
		}
	}
	if grow {
		return nil
	}
	index := make(map[string]int, len(jobs))
	for i, job := range jobs {
		if first, twice := index[job.Name]; twice {
			return &source.InvalidError{What: "job", Got: job.Name, Why: fmt.Sprintf("is in the list twice, as number %d and number %d", first+1, i+1)}
		}
		index[job.Name] = i
	}
	return nil
}
