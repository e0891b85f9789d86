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

// Frame is where one is.
type Frame struct {
	Head
	Host string // that ran the job
	File string // of the directory
	At   int64  // where what was printed begins in it
}

// Reader reads the files of a directory, and reads on in them.
type Reader struct {
	Dir *fslock.Logs // nil if no job has printed anything
	// LeftOut is told of a file in which something else stands, or which cannot be read:
	// once, with a *source.LeftOutError.
	LeftOut func(error)
	// Most is how many bytes one call of Each reads, maxIndex if it is 0.
	Most int64

	files map[string]*place
}

// maxIndex is what is read to find the frames, without what is in those that are longer
// than a read.
const maxIndex = 16 << 30

// place is how far a file was read.
type place struct {
	host string
	next int64 // 0 before its first line was read
	over bool  // it is not read any more
}

// Each shows the frames to visit that it has not shown yet, of each file in their order. One
// that is not there as a whole is left for the next time. An error of visit ends it.
func (r *Reader) Each(visit func(Frame) error) error {
	if r.Dir == nil {
		return nil
	}
	names, err := r.Dir.Names()
	if err != nil {
		return err
	}
	if r.files == nil {
		r.files = map[string]*place{}
	}
	most := budget.New(cmp.Or(r.Most, maxIndex))
	for _, name := range names {
		p := r.files[name]
		if p == nil {
			p = &place{}
			r.files[name] = p
		}
		if p.over {
			continue
		}
		if most.Over() {
			most.Skip(0) // its size is not asked for
			continue
		}
		err := r.readOn(name, p, most, visit)
		var stop *stopError
		switch {
		case errors.As(err, &stop):
			return stop.error
		case err != nil && !vfs.Gone(err):
			p.over = true
			r.LeftOut(&source.LeftOutError{Part: r.Dir.Path(name), Why: err})
		}
	}
	if why := most.Skipped(); why != nil {
		r.LeftOut(&source.LeftOutError{Part: r.Dir.Path(""), Why: why})
	}
	return nil
}

// stopError is one of visit.
type stopError struct{ error }

var errForeign = errors.New("there is no output of a job in it, or none any more; move it away")

func (r *Reader) readOn(name string, p *place, most *budget.Budget, visit func(Frame) error) error {
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
		return errForeign
	}
	w := &window{file: f, size: info.Size, most: most}
	if p.next == 0 {
		line, err := w.line(0)
		if line == nil {
			return err
		}
		var ok bool
		if p.host, ok = parseFirst(line); !ok {
			return errForeign
		}
		p.next = int64(len(line)) + 1
	}
	return r.frames(w, name, p, visit)
}

func (r *Reader) frames(w *window, name string, p *place, visit func(Frame) error) error {
	for {
		if w.most.Over() {
			w.most.Skip(w.size - p.next)
			return nil
		}
		line, err := w.line(p.next)
		if line == nil {
			return err
		}
		h, ok := parseHead(line)
		if !ok {
			return errForeign
		}
		at := p.next + int64(len(line)) + 1
		last, err := w.bytes(at+int64(h.Size), 1)
		switch {
		case len(last) == 0:
			return err
		case last[0] != '\n':
			return errForeign
		}
		if err := visit(Frame{Head: h, Host: p.host, File: name, At: at}); err != nil {
			return &stopError{err}
		}
		p.next = at + int64(h.Size) + 1
	}
}

// window is a part of a file in memory.
type window struct {
	file vfs.File
	size int64
	at   int64
	data []byte
	most *budget.Budget
}

// ahead is how much is read at a time.
const ahead = 32 << 10

// bytes are up to n of the file, from a place; none if they are not there yet.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.size-at))
	if n <= 0 {
		return nil, nil
	}
	if at < w.at || at+int64(n) > w.at+int64(len(w.data)) {
		if w.data == nil {
			w.data = make([]byte, ahead)
		}
		w.at = at
		got, err := readAll(w.file, w.data[:min(ahead, w.size-at)], at)
		w.most.Spend(int64(got))
		if w.data = w.data[:cap(w.data)][:got]; err != nil {
			return nil, err
		}
	}
	from := at - w.at
	return w.data[from:min(from+int64(n), int64(len(w.data)))], nil
}

// line is the first line from a place, without its end; nil if that is not there yet.
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
		return nil, errForeign
	}
	return nil, nil
}

// readAll reads all of p, or up to the end of the file.
func readAll(f vfs.File, p []byte, at int64) (done int, err error) {
	for done < len(p) {
		n, err := f.ReadAt(p[done:], at+int64(done))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Content is what a frame has.
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
