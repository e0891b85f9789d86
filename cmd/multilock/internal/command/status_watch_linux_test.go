package command

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/cmd/multilock/internal/console"
)

// A panic restores the terminal, too. Another process of this test panics on a terminal.
func TestWatchThatPanics(t *testing.T) {
	const variable = "MULTILOCK_TEST_PANIC"
	if os.Getenv(variable) != "" {
		o := &statusOptions{}
		require.NoError(t, o.every.Set("1h"))
		e := &Env{Env: console.NewEnv(os.Environ())}
		_ = watch(t.Context(), e, o, func(context.Context) (observation, error) {
			modes, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS)
			require.NoError(t, err)
			require.Zero(t, modes.Lflag&unix.ECHO, "the screen has the terminal")
			panic("a mistake")
		})
		return
	}
	t.Parallel()
	user, slave := clitest.OpenTerminal(t)
	before := user.Modes()
	require.NotZero(t, before.Lflag&unix.ECHO)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWatchThatPanics$")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.Error(t, cmd.Run())
	user.Screen.Expect(t, "panic: a mistake")
	require.Equal(t, before, user.Modes())
}
