package command

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/redact"
)

// lastLines has the last output lines of failed attempts that ran here, for a limited number of jobs.
type lastLines struct {
	mu  sync.Mutex
	all map[string]string
}

const maxLastLines = 1000

func (l *lastLines) add(name string, tail []byte) {
	tail = bytes.TrimRight(tail, " \t\r\n")
	line := console.Line(strings.ToValidUTF8(string(tail[bytes.LastIndexAny(tail, "\r\n")+1:]), "?"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]string{}
	}
	if _, known := l.all[name]; known || len(l.all) < maxLastLines {
		l.all[name] = line
	}
}

// of returns the last line of a failed job, "" if its last attempt ran elsewhere.
func (l *lastLines) of(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[name]
}

// maxCommand bounds a command in a message.
const maxCommand = 1000

// retryCommand returns the command that retries the failed jobs. If the list cannot be read again, or the
// command has secrets or is long, it describes how to change the command.
func (o *batchOptions) retryCommand(e *Env, src *place.Source) string {
	words := []string{"batch", "--retry-failed"}
	for _, option := range e.Line.Own {
		if option != "--retry-failed" {
			words = append(words, option)
		}
	}
	if len(o.args) > 0 {
		words = append(words, o.args...)
	} else {
		words = append(words, place.Absolute(o.list))
	}
	command := src.Place.Command(words...)
	files := append(valueFiles(o.args), o.argFiles...)
	if slices.ContainsFunc(append(files, o.list), isTransient) || len(command) > maxCommand || redact.Line(command) != command {
		return "add --retry-failed to this command"
	}
	return command
}

// isTransient reports whether a file cannot be read a second time: the standard input, or the pipe
// of a shell's <(...). Files in the memory filesystem /dev/shm stay.
func isTransient(file string) bool {
	return file == "-" || strings.HasPrefix(file, "/dev/") && !strings.HasPrefix(file, "/dev/shm/") || strings.HasPrefix(file, "/proc/")
}
