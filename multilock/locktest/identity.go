package locktest

import "github.com/multilock/go/multilock/process"

// SelfOn is the identity of this process as it would be on the host of that name: all
// others take it for a process elsewhere. With "" it is the real one.
func SelfOn(host string) (process.Identity, error) {
	self, err := process.Self()
	if host != "" {
		self.Host, self.Boot, self.Machine = host, "boot of "+host, "machine of "+host
	}
	return self, err
}
