package lockgroup

import "sync"

// inParallel calls f for each name, width at a time, until one call fails. The
// error is that of the first that did.
func inParallel(width int, names []string, f func(name string) error) error {
	work := make(chan string)
	var (
		group  sync.WaitGroup
		once   sync.Once
		failed error
	)
	stop := make(chan struct{})
	for range min(width, len(names)) {
		group.Go(func() {
			for name := range work {
				if err := f(name); err != nil {
					once.Do(func() { failed = err; close(stop) })
				}
			}
		})
	}
	feed(work, names, stop)
	group.Wait()
	return failed
}

func feed(work chan<- string, names []string, stop <-chan struct{}) {
	defer close(work)
	for _, name := range names {
		select {
		case work <- name:
		case <-stop:
			return
		}
	}
}
