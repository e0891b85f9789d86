package s3_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/fakes3"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/s3lock"
)

// TestCostOfAList counts the requests for each job of a list, on a store in memory whose answers take 20
// ms: PUT and LIST are billed alike.
func TestCostOfAList(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for _, c := range []struct {
		hosts, jobs int
		length, ttl time.Duration
		paid, read  float64 // at most, for each job
	}{
		{1, 2000, time.Second, 0, 0.8, 0.3},
		{3, 2000, 5 * time.Second, 0, 1.3, 0.9},
		{3, 500, 10 * time.Minute, 0, 42, 7},
		{3, 500, 10 * time.Minute, 10 * time.Minute, 24, 7},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := fakes3.New()
			store.Put("jobs/passed", "passed")
			var mu sync.Mutex
			counts := map[string]float64{}
			way := store.Transport(func(kind, about string, _ bool, carryOut func() error) error {
				time.Sleep(20 * time.Millisecond)
				if kind == "GET" && strings.HasSuffix(about, "/bucket/") {
					kind = "LIST"
				}
				mu.Lock()
				defer mu.Unlock()
				counts[kind] += 1 / float64(c.jobs)
				return carryOut()
			})
			list := make([]batch.Job, c.jobs)
			for i := range list {
				list[i] = batch.Job{Name: strconv.Itoa(i), Work: func(context.Context, batch.Attempt) error { time.Sleep(c.length); return nil }}
			}
			var hosts sync.WaitGroup
			start := time.Now()
			for range c.hosts {
				src, err := s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: "s3://bucket/jobs?endpoint=localhost", Transport: way}, Group: "list"})
				require.NoError(t, err)
				hosts.Go(func() {
					if _, err := batch.Run(t.Context(), src, list, batch.Options{Workers: 4, TTL: c.ttl}); err != nil {
						t.Error(err)
					}
				})
			}
			hosts.Wait()
			t.Logf("%d hosts x 4, %d jobs of %s, TTL %s: %.3v for each job, took %s", c.hosts, c.jobs, c.length, c.ttl, counts, time.Since(start))
			require.LessOrEqual(t, counts["PUT"]+counts["LIST"], c.paid)
			require.LessOrEqual(t, counts["GET"], c.read)
		})
	}
}
