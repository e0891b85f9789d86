//go:build !unix

package locktest

import "github.com/multilock/go/multilock/process"

type child struct {
	identity process.Identity
	group    process.Group
}

func startChild(p *place, _ ...string) *child {
	p.Helper()
	p.Skip("needs process groups")
	return nil
}

func (c *child) end(*place) {}
