package main

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
)

// errToldToEnd is why a job that ended with an error has no result.
var errToldToEnd = errors.New("it was told to end")

// toldLag is how much later than a job this process may be told to end: whoever
// ends all processes of an allocation, or of a service, does it one by one.
const toldLag = time.Second

// unlessTold keeps the end of a job from being recorded as its failure if it was
// told to end. Batch schedulers and service managers send SIGTERM to the jobs at the
// same time as to us: what ends with an error then has not failed, and runs again.
func (r *batchRun) unlessTold(ctx context.Context, name string, result job.Result, failure error) error {
	if result.Code == 0 || failure == nil || errors.Is(failure, errTimeout) || !r.told(ctx, result) {
		return failure
	}
	r.env.say("job %q was told to end; nothing is recorded, so it will run again", name)
	return errors.Join(lockgroup.ErrNotRun, errToldToEnd)
}

// told says whether SIGTERM was sent to this process. If the job was ended by a
// signal, the one to us may still be on its way.
func (r *batchRun) told(ctx context.Context, result job.Result) bool {
	if !ends(result.Signal) {
		select {
		case <-r.terminated:
			return true
		default:
			return false
		}
	}
	lag := time.NewTimer(toldLag)
	defer lag.Stop()
	select {
	case <-r.terminated:
		return true
	case <-ctx.Done():
		return false // it says itself why
	case <-lag.C:
		return false
	}
}
