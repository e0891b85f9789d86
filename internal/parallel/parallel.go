// Package parallel makes several calls at a time.
package parallel

import (
	"sync"
	"sync/atomic"
)

// Requests is how many requests to send to a source at a time: on NFS each takes several round trips, and
// hardly any processor time.
const Requests = 8

// Do calls f for 0 to n-1, width at a time, until one call fails. It returns the first error.
func Do(width, n int, f func(i int) error) error {
	var (
		group  sync.WaitGroup
		next   atomic.Int64
		once   sync.Once
		failed error
	)
	for range min(width, n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(n))
				}
			}
		})
	}
	group.Wait()
	return failed
}
