//go:build linux

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/nfslab/wire"
)

// outputDir unpacks a tar archive while it is written to it. Without a directory it discards the archive.
type outputDir struct {
	pipe *io.PipeWriter
	done chan error
}

func newOutputDir(dir string) *outputDir {
	reader, writer := io.Pipe()
	out := &outputDir{pipe: writer, done: make(chan error, 1)}
	go func() {
		err := unpack(reader, dir)
		_, _ = io.Copy(io.Discard, reader) // padding after the archive, or the rest of a broken one
		out.done <- err
	}()
	return out
}

func (o *outputDir) Write(p []byte) (int, error) { return o.pipe.Write(p) }

// Close waits until everything is unpacked.
func (o *outputDir) Close() error {
	o.pipe.Close()
	return <-o.done
}

// unpack does not trust the machine's output: os.Root keeps every path below dir.
func unpack(r io.Reader, dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackOne(root, header, archive); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func unpackOne(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(filepath.Clean(header.Name))
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if err := removeOld(root, name); err != nil {
			return err
		}
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		return unpackFile(root, name, header, content)
	}
	return nil
}

func unpackFile(root *os.Root, name string, header *tar.Header, content io.Reader) error {
	if err := removeOld(root, name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// removeOld removes a file of an earlier run.
func removeOld(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// keepTerminal returns a function that restores the terminal's present state. The emulator does that itself
// unless it is killed.
func keepTerminal(used bool) (func(), error) {
	stdin := int(os.Stdin.Fd())
	if !used {
		return func() {}, nil
	}
	state, err := unix.IoctlGetTermios(stdin, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("standard input is no terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(stdin, unix.TCSETS, state) }, nil
}

func (s *session) followTerminalSize() {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGWINCH)
	go func() {
		for s.sendTerminalSize() == nil {
			<-changes
		}
	}()
}

func (s *session) sendTerminalSize() error {
	size, err := unix.IoctlGetWinsize(int(os.Stdin.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return err
	}
	return s.sender.Send(wire.Resize, fmt.Appendf(nil, "%d %d", size.Row, size.Col))
}
