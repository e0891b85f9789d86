package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	name = "bench"
	file = name + ".locked"
)

// record has the size of a real one: the line for the Python MultiLock and the line of JSON.
var record = []byte("host.example.org 12345\n" + string(bytes.Repeat([]byte("x"), 350)) + "\n")

// calls is a lock of bare system calls, uncontended: a name that is held is an error.
type calls struct {
	staging, group int
	held           int
	attempts       int
}

func open(base string) (*calls, error) {
	staging, err := openDirectory(filepath.Join(base, ".multilock", "staging"))
	if err != nil {
		return nil, err
	}
	group, err := openDirectory(filepath.Join(base, "bench"))
	if err != nil {
		return nil, err
	}
	return &calls{staging: staging, group: group}, nil
}

func openDirectory(path string) (int, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return -1, err
	}
	return unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func (c *calls) Acquire() error {
	return c.acquire(func(int) error { return nil })
}

// flushing is calls with the record flushed before it is published.
type flushing struct{ *calls }

func (f flushing) Acquire() error {
	return f.acquire(unix.Fsync)
}

func (c *calls) acquire(flush func(int) error) error {
	c.attempts++
	token := strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(c.attempts)
	if err := c.stage(token, flush); err != nil {
		return fmt.Errorf("staging %s: %w", token, err)
	}
	if err := unix.Renameat(c.staging, token, c.group, name); err != nil {
		return fmt.Errorf("publishing %s: %w", token, err)
	}
	return c.readBack()
}

func (c *calls) stage(token string, flush func(int) error) error {
	if err := unix.Mkdirat(c.staging, token, 0o755); err != nil {
		return err
	}
	directory, err := unix.Openat(c.staging, token, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(directory)
	written, err := unix.Openat(directory, file, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(written, record)
	return errors.Join(err, flush(written), unix.Close(written))
}

func (c *calls) readBack() error {
	held, err := unix.Openat(c.group, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	c.held = held
	published, err := unix.Openat(held, file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	defer unix.Close(published)
	buffer := make([]byte, len(record))
	n, err := unix.Read(published, buffer)
	if err == nil && !bytes.Equal(buffer[:n], record) {
		err = errors.New("somebody else's record")
	}
	return err
}

func (c *calls) Release() error {
	return errors.Join(
		unix.Unlinkat(c.held, file, 0),
		unix.Unlinkat(c.group, name, unix.AT_REMOVEDIR),
		unix.Close(c.held),
	)
}
