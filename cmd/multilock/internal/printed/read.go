package printed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/multilock/go/internal/budget"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Frame is the location of a frame.
type Frame struct {
	Head
	Host string // the host that ran the job
	File string // in the directory
	At   int64  // offset of the output
}

// Reader reads the files of a directory, and follows them.
type Reader struct {
	Dir *fslock.Logs // nil if no job has printed anything yet
	// LeftOut receives a *source.LeftOutError once for each file that is unreadable or has an unknown
	// format.
	LeftOut func(error)
	// Limit is how many bytes one call of Each reads, maxIndex if 0.
	Limit int64

	only func(name string) bool // which files to read; nil for all
	runs bool                   // also read frames of runs
	cut  bool                   // read a truncated frame up to its end

	files map[string]*position
}

// maxIndex limits how much is read to find the frames. Most of a long frame is skipped.
const maxIndex = 16 << 30

// position is how far a file has been read.
type position struct {
	host string
	next int64 // offset of the next frame; 0 until the first line of the file was read
	over bool  // skip the rest of the file
}

// Each calls visit for each new frame, in the order of its file. It leaves a truncated frame
// for the next call. It stops at an error of visit.
func (r *Reader) Each(visit func(Frame) error) error {
	if r.Dir == nil {
		return nil
	}
	names, err := r.Dir.Names()
	if err != nil {
		return err
	}
	if r.files == nil {
		r.files = map[string]*position{}
	}
	limit := budget.New(cmp.Or(r.Limit, maxIndex))
	for _, name := range names {
		if r.only != nil && !r.only(name) {
			continue
		}
		p := r.files[name]
		if p == nil {
			p = &position{}
			r.files[name] = p
		}
		if p.over {
			continue
		}
		if limit.Over() {
			limit.Skip(0) // of unknown size
			continue
		}
		err := r.follow(name, p, limit, visit)
		var stop *stopError
		switch {
		case errors.As(err, &stop):
			return stop.error
		case err != nil && !vfs.Gone(err):
			p.over = true
			r.LeftOut(&source.LeftOutError{Part: r.Dir.Path(name), Why: err})
		}
	}
	if why := limit.Skipped(); why != nil {
		r.LeftOut(&source.LeftOutError{Part: r.Dir.Path(""), Why: why})
	}
	return nil
}

// stopError wraps an error of visit.
type stopError struct{ error }

var errUnknown = errors.New("it is not complete output of jobs; move it away")

func (r *Reader) follow(name string, p *position, limit *budget.Budget, visit func(Frame) error) error {
	f, err := r.Dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode.IsRegular():
		return errUnknown
	}
	w := &window{file: f, size: info.Size, limit: limit}
	if p.next == 0 {
		line, err := w.line(0)
		if line == nil {
			return err
		}
		var ok bool
		if p.host, ok = parseFirst(line); !ok {
			return errUnknown
		}
		p.next = int64(len(line)) + 1
	}
	return r.frames(w, name, p, visit)
}

func (r *Reader) frames(w *window, name string, p *position, visit func(Frame) error) error {
	for {
		if w.limit.Over() {
			w.limit.Skip(w.size - p.next)
			return nil
		}
		line, err := w.line(p.next)
		if line == nil {
			return err
		}
		h, ok := parseHead(line)
		if !ok || !h.isOutput() && !r.runs {
			return errUnknown
		}
		at := p.next + int64(len(line)) + 1
		last, err := w.bytes(at+int64(h.Size), 1)
		switch {
		case len(last) == 0 && err == nil && r.cut && at < w.size:
			h.Size = int(min(w.size-at, int64(h.Size)))
		case len(last) == 0:
			return err
		case last[0] != '\n':
			return errUnknown
		}
		if err := visit(Frame{Head: h, Host: p.host, File: name, At: at}); err != nil {
			return &stopError{err}
		}
		p.next = at + int64(h.Size) + 1
	}
}

// window is a part of a file in memory.
type window struct {
	file  vfs.File
	size  int64
	at    int64
	data  []byte
	limit *budget.Budget
}

// readSize is the size of one read.
const readSize = 32 << 10

// bytes returns up to n bytes at an offset, none beyond the end.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.size-at))
	if n <= 0 {
		return nil, nil
	}
	if at < w.at || at+int64(n) > w.at+int64(len(w.data)) {
		if w.data == nil {
			w.data = make([]byte, readSize)
		}
		w.at = at
		got, err := readAll(w.file, w.data[:min(readSize, w.size-at)], at)
		w.limit.Spend(int64(got))
		if w.data = w.data[:cap(w.data)][:got]; err != nil {
			return nil, err
		}
	}
	from := at - w.at
	return w.data[from:min(from+int64(n), int64(len(w.data)))], nil
}

// line returns the line at an offset without its newline, nil if it is truncated.
func (w *window) line(at int64) ([]byte, error) {
	data, err := w.bytes(at, maxHead)
	if err != nil {
		return nil, err
	}
	end := bytes.IndexByte(data, '\n')
	switch {
	case end >= 0:
		return data[:end], nil
	case len(data) == maxHead:
		return nil, errUnknown
	}
	return nil, nil
}

// readAll fills p, or reads up to the end of the file.
func readAll(f vfs.File, p []byte, at int64) (int, error) {
	n, err := io.ReadFull(io.NewSectionReader(f, at, int64(len(p))), p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// Content returns the output in a frame.
func (r *Reader) Content(of Frame) ([]byte, error) {
	f, err := r.Dir.Open(of.File)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	data := make([]byte, of.Size)
	n, err := readAll(f, data, of.At)
	if err == nil && n < len(data) {
		err = fmt.Errorf("%s has become shorter", r.Dir.Path(of.File))
	}
	return data[:n], err
}
