package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/report"
)

// findLogs finds the output of the jobs that need attention. For a page it also reads the end of it.
func (o *reportOptions) findLogs(e *Env, src *place.Source, t *report.Timeline) {
	if o.logs == "" {
		if err := findCaptured(e, src, t); err != nil {
			t.Missing = append(t.Missing, fmt.Sprintf("the output of runs could not be read: %v", err))
		}
	}
	where, stop, err := findOutput(src, o.logs)
	if errors.Is(err, fs.ErrNotExist) && o.logs == "" {
		return
	}
	if err != nil {
		t.Missing = append(t.Missing, fmt.Sprintf("the output of the jobs could not be found: %v", err))
		return
	}
	defer stop()
	show.InParallel(len(t.Jobs), func(i int) {
		if job := &t.Jobs[i]; job.Trouble() && job.Log == "" {
			job.Log = where(job.Name)
		}
	})
	if o.JSON {
		return
	}
	jobs := map[string]*report.Job{}
	for _, g := range t.Failures() {
		for _, job := range g.Jobs {
			if job.Tail == "" {
				jobs[job.Name] = job
			}
		}
	}
	if k, with := src.Locks.(logStore); with && o.logs == "" {
		err = readGroupTails(e, k, jobs)
	} else {
		readFileTails(jobs)
	}
	if err != nil {
		t.Missing = append(t.Missing, fmt.Sprintf("the output of the jobs could not be read: %v", err))
	}
}

// readGroupTails reads the end of the output of each job's last attempt.
func readGroupTails(e *Env, k logStore, jobs map[string]*report.Job) error {
	dir, err := k.FindLogs()
	if err != nil || len(jobs) == 0 {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	r, tails := logsReader(e, dir), map[string]*tail{}
	err = r.Each(func(f printed.Frame) error {
		if jobs[f.Name] == nil {
			return nil
		}
		if tails[f.Name] == nil {
			tails[f.Name] = &tail{}
		}
		tails[f.Name].add(f)
		return nil
	})
	if err != nil {
		return err
	}
	for name, last := range tails {
		if jobs[name].Tail, err = last.text(r); err != nil {
			return err
		}
	}
	return nil
}

// findCaptured finds the output of run --capture, and reads the end of it, for jobs whose last run was
// captured.
func findCaptured(e *Env, src *place.Source, t *report.Timeline) error {
	store, with := src.Locks.(runStore)
	if !with {
		return nil
	}
	locks, err := store.CapturedLocks()
	captured := setOf(locks)
	for i := range t.Jobs {
		if job := &t.Jobs[i]; err == nil && job.Trouble() && captured[job.Name] {
			err = readCaptured(e, src, job)
		}
	}
	return err
}

func readCaptured(e *Env, src *place.Source, job *report.Job) error {
	r, err := openRun(e, src, job.Name, 0)
	if err != nil || r == nil {
		return err
	}
	defer r.close()
	if n := len(job.Runs); n == 0 || job.Runs[n-1].Token != r.Run.Token {
		return nil
	}
	job.Log = src.Place.Printed(job.Name)
	var last tail
	if err := r.Each(true, func(f printed.Frame) error { last.add(f); return nil }); err != nil {
		return err
	}
	job.Tail, err = last.text(&r.Reader)
	return err
}

// tail has the frames with the end of the output of a job's last attempt.
type tail struct {
	frames []printed.Frame
	size   int
}

func (t *tail) add(f printed.Frame) {
	if n := len(t.frames); n > 0 && !sameAttempt(t.frames[n-1], f) {
		if f.Began.Before(t.frames[n-1].Began) {
			return
		}
		t.frames, t.size = nil, 0
	}
	t.frames, t.size = append(t.frames, f), t.size+f.Size
	for t.size-t.frames[0].Size >= report.MaxTail {
		t.frames, t.size = t.frames[1:], t.size-t.frames[0].Size
	}
}

// text reads the end of the output.
func (t *tail) text(r *printed.Reader) (string, error) {
	var text []byte
	for _, f := range t.frames {
		data, err := r.Content(f)
		if err != nil {
			return "", err
		}
		text = append(text, data...)
	}
	return string(text[max(len(text)-maxRead, 0):]), nil
}

// maxRead bounds how much of a job's output is read. It exceeds what is shown, because the page may drop
// carriage returns.
const maxRead = 2 * report.MaxTail

// readFileTails reads the ends of the files of batch --logs and --results. It skips unreadable files: their
// names are on the page.
func readFileTails(jobs map[string]*report.Job) {
	for _, job := range jobs {
		for _, path := range []string{job.Log, filepath.Join(job.Log, "stdout"), filepath.Join(job.Log, "stderr")} {
			if job.Log != "" {
				job.Tail += fileTail(path)
			}
		}
	}
}

func fileTail(path string) string {
	f, err := outfile.Peek(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from := max(info.Size()-maxRead, 0)
	data, _ := io.ReadAll(io.NewSectionReader(f, from, maxRead))
	return string(data)
}
