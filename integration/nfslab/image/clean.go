//go:build linux

package image

import (
	"fmt"
	"os"
	"path/filepath"
)

// RunPrefix begins the names of files that runs have in the cache for a moment.
const RunPrefix = "run-"

// Clean empties the cache. Machines that run have read all they need; one that is just starting may fail.
func (c Cache) Clean() error {
	if _, err := os.Stat(c.Dir); os.IsNotExist(err) {
		return nil
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, pattern := range []string{"image-*", "current-*", "build-*", "accel-*", "apt-*", "bin-*", RunPrefix + "*"} {
		if err := removeAll(filepath.Join(c.Dir, pattern)); err != nil {
			return fmt.Errorf("clean: %w", err)
		}
	}
	return nil
}

func removeAll(pattern string) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
