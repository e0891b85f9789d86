package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/windows"
)

// Shell returns the command that runs a line in cmd.exe: without the user's AutoRun commands, and
// with ! as an ordinary character.
func Shell(line string) []string { return []string{"cmd.exe", "/d", "/v:off", "/s", "/c", line} }

// commandLine returns the file to execute and its command line. Most programs parse that by one
// rule; cmd.exe takes what follows /s /c literally, except one pair of quotes around it.
func (s Spec) commandLine() (path, line string, err error) {
	path, err = s.lookPath()
	if err != nil {
		return "", "", err
	}
	if text := s.Args[len(s.Args)-1]; slices.Equal(s.Args, Shell(text)) {
		return path, strings.TrimSuffix(strings.Join(Shell(""), " "), " ") + ` "` + text + `"`, nil
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".bat" || ext == ".cmd" {
		// cmd.exe parses the arguments by its own rules, and would execute parts of them.
		if slices.ContainsFunc(s.Args[1:], func(arg string) bool { return strings.ContainsAny(arg, `"%!^&|<>`+"\r\n") }) {
			return "", "", s.unfit(errors.New(`an argument of a batch file has a character that cmd.exe would take for its own; run "cmd /c ..." instead`))
		}
	}
	return path, windows.ComposeCommandLine(s.Args), nil
}

// lookPath finds the file to execute in the runner's PATH, with the extensions of PATHEXT.
func (s Spec) lookPath() (string, error) {
	name := s.Args[0]
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", s.unfit(fmt.Errorf(`it is only in the current directory; if that is meant, run .\%s`, name))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &NotFoundError{Command: name, Err: err}
	}
	return "", s.unfit(err)
}

func (s Spec) unfit(err error) error {
	return &NotRunnableError{Command: s.Args[0], Reason: err.Error(), Err: err}
}

// explain turns an error of CreateProcess into an error of this package.
func (s Spec) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotFoundError{Command: s.Args[0], Err: err}
	case errors.Is(err, windows.ERROR_BAD_EXE_FORMAT):
		return s.unfit(fmt.Errorf("%w; name the program that runs such files, too", err))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, windows.ERROR_DIRECTORY):
		return s.unfit(err)
	}
	return fmt.Errorf("start %s: %w", s.Args[0], err)
}
