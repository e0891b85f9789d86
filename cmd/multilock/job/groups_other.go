//go:build !linux

package job

import "github.com/multilock/go/multilock/process"

// Groups returns the job's process group, or its process on Windows, or none if the command has
// ended.
func (j *Job) Groups() []process.Group {
	own := j.Group()
	if own.PGID == 0 {
		return nil
	}
	return []process.Group{own}
}
