package process

import "golang.org/x/sys/unix"

// usuallySmall is more than what is read here has, unless the user is in hundreds
// of groups, which /proc/self/status lists.
const usuallySmall = 4096

// readSmall reads a small file of the kernel's or of the system's setup. It takes
// three system calls where os.ReadFile takes ten, for that one offers the file to
// the runtime's poller first: every short job pays for who its runner is.
func readSmall(path string) ([]byte, error) {
	fd, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	content := make([]byte, usuallySmall)
	for read := 0; ; {
		n, err := readOnce(fd, content[read:])
		if err != nil {
			return nil, err
		}
		if read += n; read < len(content) {
			return content[:read], nil
		}
		content = append(content, make([]byte, len(content))...)
	}
}

func openFile(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readOnce fills buf or meets the end of the file: the kernel makes up such a
// file as a whole, and copies as much of it as there is room for.
func readOnce(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
