// Command group makes a group of jobs that have ended, as a batch leaves it, for those who read it: a list, a result for each
// chunk of 64 jobs (or for each job), and a history. One job in a hundred thousand has failed.
//
//	group DIR JOBS [each]
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

func main() {
	jobs, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = run(context.Background(), os.Args[1], jobs, len(os.Args) > 3)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "group:", err)
		os.Exit(1)
	}
}

const (
	chunk    = 64
	failures = 100_000 // one job in so many fails
	workers  = 4
)

func run(ctx context.Context, dir string, jobs int, each bool) error {
	src, err := fslock.Open(fslock.Options{Base: dir})
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it only closes descriptors
	if err := publish(ctx, src, jobs, each); err != nil {
		return err
	}
	size, begin := chunk, time.Now().Add(-time.Hour)
	if each {
		size = 1
	}
	return parallel.Do(workers, (jobs+size-1)/size, func(i int) error {
		from := i*size + 1
		return record(ctx, src, from, min(from+size-1, jobs), begin, each)
	})
}

func publish(ctx context.Context, src *fslock.Source, jobs int, each bool) error {
	var list bytes.Buffer
	if !each {
		fmt.Fprintf(&list, "#chunks of %d\n", chunk)
	}
	for n := range jobs {
		fmt.Fprintf(&list, "%s\tconvert %d\n", name(n+1), n+1)
	}
	_, err := src.Publish(ctx, list.Bytes())
	return err
}

func name(number int) string { return fmt.Sprintf("page%07d", number) }

// record is what the holder of some jobs writes: each of them took 10 ms.
func record(ctx context.Context, src *fslock.Source, from, to int, begin time.Time, each bool) error {
	const took = 10 * time.Millisecond
	begin = begin.Add(time.Duration(from) * took / workers)
	r := multilock.Result{Attempt: 1, Start: begin, Duration: took * time.Duration(to-from+1), Final: true, Chunk: &source.Chunk{From: from, To: to}}
	for n := from; n <= to; n++ {
		job := source.ChunkJob{Number: n, Name: name(n), Attempt: 1, Start: begin.Add(time.Duration(n-from) * took).UnixMilli(), Duration: took.Microseconds()}
		if n%failures == 0 {
			job.Exit, r.Exit = 3, 1
		}
		r.Chunk.Jobs = append(r.Chunk.Jobs, job)
	}
	r.Chunk.Count()
	r.Name = joblist.ChunkName(source.Range{From: from, To: to})
	if each {
		r.Name, r.Chunk, r.Command = name(from), nil, fmt.Sprint("convert ", from)
	}
	lock, err := multilock.TryAcquire(ctx, src, r.Name, multilock.Options{})
	if err != nil {
		return err
	}
	r.Token, r.By = lock.Record().Token, lock.Record().Holder.Identity
	err = lock.Commit(ctx, r)
	if err == nil {
		err = src.Record(ctx, []source.Event{source.CommittedEvent(r, r.Start.Add(r.Duration))})
	}
	return errors.Join(err, lock.Release(ctx))
}
