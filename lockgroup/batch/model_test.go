package batch_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
)

var (
	model   = flag.String("model", "", "print what lists of jobs cost with these numbers of `HOSTS`, separated by commas")
	lengths = flag.String("lengths", "100ms,1s,10s,1m,10m", "for -model: how long the jobs take, separated by commas")
)

// prices are the requests that each call on the source sends to an NFS server while other hosts change the
// shared directories, as measured by integration/nfs (TestCost and TestCostOfEachCallOfAJob), version
// 4.2.
var prices = map[string]float64{
	"try": 10, "refusal": -2, "outcome": 7, "commit": 12, "release": 6, "renew": 2,
	"read board": 4, "write board": 1, "record": 6, "names": 3, "results": 4, "result": 5, "look": 8, "break": 10, "publish": 8, "open board": 6,
}

// cluster is a set of hosts that work through one list, each with this many workers.
type cluster struct {
	hosts, workers, jobs int
	length               time.Duration // of a job
}

// cost is the cost of each job.
type cost struct{ requests, attempts, records float64 }

// simulate runs the real scheduler on a simulated clock, with calls of 5 ms.
func simulate(t *testing.T, c cluster) (spent cost) {
	synctest.Test(t, func(t *testing.T) {
		v := grouptest.NewChunkVenue()
		v.Latency = 5 * time.Millisecond
		list := make([]batch.Job, c.jobs)
		for i := range list {
			list[i] = batch.Job{Name: strconv.Itoa(1000000 + i), Work: lasts(c.length)}
		}
		start := time.Now()
		var hosts sync.WaitGroup
		for range c.hosts {
			b := prepare(t, v, list, batch.Options{Workers: c.workers})
			hosts.Go(func() {
				if _, err := b.Run(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		hosts.Wait()
		for call, price := range prices {
			spent.requests += price * float64(v.Count(call))
		}
		jobs := float64(c.jobs)
		spent = cost{spent.requests / jobs, float64(v.Count("try")) / jobs, float64(v.Count("commit")) / jobs}
		ideal := time.Duration(max(1, c.jobs/(c.hosts*c.workers))) * c.length
		t.Logf("%+v: %+v, took %s, ideally %s; %s", c, spent, time.Since(start), ideal, counted(v))
	})
	return spent
}

func counted(v *grouptest.ChunkVenue) string {
	var all []string
	for call := range prices {
		all = append(all, fmt.Sprintf("%s %d", call, v.Count(call)))
	}
	return strings.Join(all, ", ")
}

// A list costs the server a handful of requests per job, with any number of hosts.
// Rule: chunks, no-map
func TestCostOfAList(t *testing.T) {
	for _, c := range []cluster{{1, 4, 2000, time.Second}, {3, 4, 2000, 5 * time.Second}, {50, 32, 32000, 10 * time.Second}, {50, 32, 16000, 10 * time.Second}} {
		spent := simulate(t, c)
		require.LessOrEqual(t, spent.requests, 8.0, "%+v", c)
		require.LessOrEqual(t, spent.attempts, 1.2, "%+v", c)
	}
}

// TestModel prints a table: scripts/bench-batch --model.
// Rule: none (prints a table)
func TestModel(t *testing.T) {
	if *model == "" {
		t.Skip("for -model")
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "hosts x workers\tjobs of\trequests per job\tattempts per job\trecords per job")
	for text := range strings.SplitSeq(*model, ",") {
		hosts, err := strconv.Atoi(text)
		require.NoError(t, err)
		for text := range strings.SplitSeq(*lengths, ",") {
			length, err := time.ParseDuration(text)
			require.NoError(t, err)
			const workers, each = 32, 10
			spent := simulate(t, cluster{hosts, workers, hosts * workers * each, length})
			fmt.Fprintf(table, "%d x %d\t%s\t%.1f\t%.2f\t%.2f\n", hosts, workers, length, spent.requests, spent.attempts, spent.records)
		}
	}
}

// TestModelOfTheLab prints the model's estimate for the lists of TestCostOfSharedBatch in integration/nfs:
// scripts/bench-batch --model.
// Rule: none (prints a table)
func TestModelOfTheLab(t *testing.T) {
	if *model == "" {
		t.Skip("for -model")
	}
	for _, c := range []cluster{{jobs: 2000, length: time.Millisecond}, {jobs: 240, length: 5 * time.Second}, {jobs: 600, length: 5 * time.Second}} {
		for hosts := range 3 {
			c.hosts, c.workers = hosts+1, 4
			spent := simulate(t, c)
			fmt.Printf("like the lab: %d hosts x %d, %d jobs of %s: %.1f requests per job\n", c.hosts, c.workers, c.jobs, c.length, spent.requests)
		}
	}
}
