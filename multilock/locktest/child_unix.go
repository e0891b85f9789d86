//go:build unix

package locktest

import (
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
)

// child is another process, in its own process group. It ends when the pipe that it reads from is closed,
// so also when the test is killed. Its environment is ours and the given variables.
type child struct {
	identity process.Identity
	group    process.Group
	stdin    io.Closer
	cmd      *exec.Cmd
}

func startChild(p *place, vars ...string) *child {
	p.Helper()
	cmd := exec.Command("cat")
	cmd.Env = append(os.Environ(), vars...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	require.NoError(p, err)
	require.NoError(p, cmd.Start())
	c := &child{cmd: cmd, stdin: stdin}
	p.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	c.identity, err = process.Find(cmd.Process.Pid)
	require.NoError(p, err)
	c.group, err = process.FindGroup(cmd.Process.Pid)
	require.NoError(p, err)
	return c
}

// end ends the process and leaves no zombie.
func (c *child) end(p *place) {
	p.Helper()
	require.NoError(p, c.stdin.Close())
	require.NoError(p, c.cmd.Wait())
}
