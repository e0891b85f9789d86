package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// DoneError means that a list cannot be replaced because it changes the commands of jobs that are
// done.
type DoneError struct{ Names []string }

func (e *DoneError) Error() string {
	const most = 10
	more := ""
	if n := len(e.Names) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("the list has other commands for jobs that are done: %q%s", e.Names[:min(len(e.Names), most)], more)
}

// BusyError means that a job cannot be changed now, because another host may be running it.
type BusyError struct {
	Name  string       // of the job
	Chunk source.Range // of the lock
	By    multilock.Observation
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("job %q cannot be changed now: the lock of %s is held by %s: %s", e.Name, e.Chunk, e.By.Record.Holder, e.By.Why)
}

// ErrReplaced means that another host has replaced the list at the same time.
var ErrReplaced = errors.New("another host has replaced the group's list of jobs meanwhile")

// replaceCommand is the command in the records of an editor's locks.
const replaceCommand = "multilock batch --replace"

// mostOfSections limits how much is read of a list with all its sections.
const mostOfSections = 512 << 20

// editor replaces the group's list. It acquires the locks of all chunks with a job that changes,
// writes into their records that the next section must be read first, and then appends that section.
// A crash in between leaves records that refer to a missing section: see settle.
type editor struct {
	*Batch
	own  *list // this process's list
	dry  bool
	end  time.Time // when it stops waiting for other hosts
	was  *list     // the group's list as it was first read
	held []*editedUnit
	done []string // finished jobs whose command changes
}

// editedUnit is a chunk with jobs that change.
type editedUnit struct {
	source.Range
	lock  *multilock.Lock // nil if the editor changes nothing
	last  multilock.Result
	chunk source.Chunk
}

func newEditor(b *Batch) *editor {
	return &editor{Batch: b, end: time.Now().Add(b.opt.Wait), own: &list{jobs: b.jobs, barriers: b.opt.Barriers, needs: b.opt.Needs, shell: b.opt.Shell}}
}

// Foresee returns the changes that Run would make to the group's list. It changes nothing.
func (b *Batch) Foresee(ctx context.Context) (Changes, error) {
	e := newEditor(b)
	e.dry = true
	there, err := e.read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return Changes{}, nil
	}
	var change *edits
	if err == nil {
		change, err = e.compare(there)
	}
	if err == nil {
		err = e.findAll(ctx, change)
	}
	if err != nil {
		return Changes{}, err
	}
	return change.Changes, nil
}

func (b *Batch) read(ctx context.Context) ([][]byte, error) {
	return bounded.Call(ctx, func(ctx context.Context) ([][]byte, error) { return b.grower.Sections(ctx, mostOfSections) })
}

// replace replaces the group's list with the editor's own list, or checks that they are equal. It
// returns false if another host changed the list in the meantime.
func (e *editor) replace(ctx context.Context) (agreed bool, err error) {
	there, err := e.read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // another host removed the list
	}
	if err != nil {
		return false, err
	}
	change, err := e.compare(there)
	if err != nil {
		return false, err
	}
	e.done = nil
	err = e.findAll(ctx, change)
	found := err == nil
	if found {
		agreed, err = e.make(ctx, there, change)
	}
	if failed := e.release(ctx); failed != nil {
		return false, errors.Join(err, failed) // these locks become free when this process ends
	}
	if !found {
		err = e.await(ctx, err)
	}
	return agreed, err
}

// make makes the changes, under the locks of all jobs that change. It returns false if another host
// changed the list first.
func (e *editor) make(ctx context.Context, there [][]byte, change *edits) (bool, error) {
	next := 0
	if !change.none() {
		next = len(there) + 1
	}
	if err := e.announceAll(ctx, change, next); err != nil {
		return false, err
	}
	known := len(there)
	if next > 0 {
		placed, err := bounded.Call(ctx, func(ctx context.Context) (bool, error) { return e.grower.Continue(ctx, there, change.next.encode()) })
		if err != nil || !placed {
			return false, err
		}
		known, change.next.revision = next, next
	}
	e.adopt(change.next, known)
	if e.opt.Replaced != nil && (next > 0 || len(change.Redone) > 0) {
		e.opt.Replaced(change.Changes)
	}
	return true, nil
}

// await waits before another try, if err means that other hosts hold a job. Another editor may be
// making the same change; other hosts are asked to give back the jobs that they have not begun.
func (e *editor) await(ctx context.Context, err error) error {
	var busy *BusyError
	if !errors.As(err, &busy) || busy.By.Record.Holder.Command != replaceCommand && time.Now().After(e.end) {
		return err
	}
	if chunks, ok := e.src.(source.Chunks); ok {
		opened, err := bounded.Call(ctx, chunks.OpenProgressMap)
		if err != nil {
			return err
		}
		m := &progressMap{ProgressMap: opened, seen: make([]byte, 1)}
		_, err = m.updates(ctx)
		err = errors.Join(err, m.write(ctx, 0, func(last byte) byte { return last + 1 }), m.close(ctx))
		e.exchange.note(err)
	}
	return bounded.Sleep(ctx, mapEvery)
}

// compare finds the changes, and checks that they are allowed.
func (e *editor) compare(there [][]byte) (*edits, error) {
	now, err := readList(there)
	if err != nil {
		return nil, err
	}
	change, err := now.editsTo(e.own, e.opt.Redo)
	if err != nil {
		return nil, err
	}
	change.next.revision = now.revision
	adds := e.opt.Add && len(change.Changed)+len(change.Removed) == 0
	switch {
	case change.none():
	case !e.opt.Replace && !adds:
		return nil, change.first
	case e.was != nil && !e.was.same(now):
		return nil, ErrReplaced
	}
	e.was = now
	return change, nil
}

// findAll acquires the locks of all chunks with a job that changes, and reads their records.
func (e *editor) findAll(ctx context.Context, change *edits) error {
	numbers := slices.Sorted(maps.Keys(change.of))
	for i := range numbers {
		numbers[i]++
	}
	s := newStages(len(e.was.jobs), e.was.barriers)
	for _, u := range s.divided(e.was.ends) {
		if in := within(u.Range, numbers); len(in) > 0 {
			if err := e.find(ctx, change, u, in); err != nil {
				return err
			}
		}
	}
	if len(e.done) > 0 {
		return &DoneError{e.done}
	}
	return nil
}

// within returns the numbers in a range.
func within(r source.Range, numbers []int) (in []int) {
	from, _ := slices.BinarySearch(numbers, r.From)
	to, _ := slices.BinarySearch(numbers, r.To+1)
	return numbers[from:to]
}

// find acquires the lock of a unit, and then those of its parts with these jobs.
func (e *editor) find(ctx context.Context, change *edits, of unit, numbers []int) error {
	u := &editedUnit{Range: of.Range}
	err := e.hold(ctx, u, of)
	if held := (*multilock.HeldError)(nil); errors.As(err, &held) {
		return e.findParts(ctx, change, of, numbers, held.Observation)
	}
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		u.last, u.chunk = multilock.Result{Name: of.name(), Attempt: 1, Start: time.Now()}, source.Chunk{From: u.From, To: u.To}
		return nil
	case err != nil:
		return err
	case u.last.Chunk == nil:
		return fmt.Errorf("the result of %s cannot be read: %s", u.Range, cmp.Or(u.last.Foreign, "it is that of a job"))
	}
	if u.chunk = *u.last.Chunk; u.chunk.From != u.From || u.chunk.To != u.To {
		u.chunk = source.Chunk{From: u.From, To: u.To, Fence: u.chunk.Fence} // of an earlier list
	}
	for _, part := range u.chunk.Returned {
		if in := within(part, numbers); len(in) > 0 {
			if err := e.find(ctx, change, unit{Range: part}, in); err != nil {
				return err
			}
		}
	}
	for _, job := range u.chunk.Jobs {
		what := change.of[job.Number-1]
		if was := e.was.jobs[job.Number-1].Name; was == job.Name && what.command && !what.redo && isDone(job) {
			e.done = append(e.done, job.Name)
		}
	}
	return nil
}

// hold acquires the lock of a unit and reads its record.
func (e *editor) hold(ctx context.Context, u *editedUnit, of unit) (err error) {
	if e.dry {
		u.last, err = e.exchange.current(ctx, of.name())
		return err
	}
	opt := multilock.Options{TTL: e.opt.TTL, Poll: e.opt.Poll, StalePolicy: e.opt.StalePolicy, User: e.opt.User, Command: replaceCommand}
	if u.lock, err = multilock.TryAcquire(ctx, e.src, of.name(), opt); err != nil {
		return err
	}
	e.held = append(e.held, u)
	if err = e.claimer.checkPart(of); err == nil {
		u.last, err = u.lock.Outcome(ctx)
	}
	return err
}

// findParts is find for a unit that another process holds: it succeeds if these jobs were given back.
func (e *editor) findParts(ctx context.Context, change *edits, of unit, numbers []int, by multilock.Observation) error {
	busy := &BusyError{e.was.jobs[numbers[0]-1].Name, of.Range, by}
	r, err := e.exchange.current(ctx, of.name())
	if errors.Is(err, multilock.ErrNoResult) || err == nil && r.Chunk == nil {
		return busy
	}
	if err != nil {
		return err
	}
	for _, part := range r.Chunk.Returned {
		in := within(part, numbers)
		if len(in) == 0 {
			continue
		}
		err := e.find(ctx, change, unit{Range: part, of: of.Range}, in)
		if errors.Is(err, errTakenBack) {
			return busy
		}
		if err != nil {
			return err
		}
		numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return slices.Contains(in, n) })
	}
	if len(numbers) > 0 {
		busy.Name = e.was.jobs[numbers[0]-1].Name
		return busy
	}
	return nil
}

func isDone(job source.ChunkJob) bool { return !job.Retry && job.Exit == 0 && job.Signal == "" }

// announceAll writes into the records that section number next must be read first, and deletes the
// results of jobs that change, so that they run again. next is 0 for a list that does not change.
func (e *editor) announceAll(ctx context.Context, change *edits, next int) error {
	for _, u := range e.held {
		var forgotten []source.ChunkJob
		jobs := u.chunk.Jobs
		u.chunk.Jobs = nil
		for _, job := range jobs {
			if what := change.of[job.Number-1]; what.command || what.removed || what.redo || what.needs && !isDone(job) {
				forgotten = append(forgotten, job)
				continue
			}
			u.chunk.Jobs = append(u.chunk.Jobs, job.On(u.last.By.Host))
		}
		if next == 0 && len(forgotten) == 0 {
			continue
		}
		if err := e.announce(ctx, u, next, forgotten); err != nil {
			return err
		}
	}
	return nil
}

func (e *editor) announce(ctx context.Context, u *editedUnit, next int, forgotten []source.ChunkJob) error {
	drop := func() error { return nil }
	if chunks, ok := e.src.(source.Chunks); ok && slices.ContainsFunc(forgotten, isDone) {
		drop = func() error { // the map may have the whole chunk as done
			_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, chunks.DropProgressMap(ctx) })
			return err
		}
	}
	if err := drop(); err != nil {
		return err
	}
	u.chunk.Revision = max(u.chunk.Revision, next)
	u.chunk.Count()
	record, r := u.lock.Record(), u.last
	r.Token, r.By, r.User, r.Command = record.Token, record.Holder.Identity, record.Holder.User, record.Holder.Command
	r.Chunk, r.Final, r.Exit, r.Why = &u.chunk, u.chunk.Final(), 0, ""
	if u.chunk.Failed > 0 {
		r.Exit, r.Why = 1, describeFailed(&u.chunk)
	}
	if err := u.lock.Commit(ctx, r); err != nil {
		return err
	}
	var events []source.Event
	for _, job := range forgotten {
		events = append(events, source.Event{Time: time.Now(), What: source.EventForgot, Name: job.Name, Token: r.Token, By: r.By, User: r.User})
	}
	if len(events) > 0 {
		_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.src.Record(ctx, events) })
		e.exchange.note(err)
	}
	return drop() // again, for a host that inspected this lock late
}

func (e *editor) release(ctx context.Context) (err error) {
	for _, u := range e.held {
		err = errors.Join(err, u.lock.Release(context.WithoutCancel(ctx)))
	}
	e.held = nil
	return err
}

// adopt makes l the list to work through.
func (b *Batch) adopt(l *list, sections int) {
	b.jobs, b.opt.Barriers, b.opt.Needs, b.opt.Shell = l.jobs, l.barriers, l.needs, l.shell
	b.sections = l.ends
	b.schedule.change(func() { b.schedule.begun(b.jobs, b.opt, listRead{revision: l.revision, known: sections}) })
	b.divide()
}

// checkRedo rejects names in Redo that are not in the list.
func (o *Options) checkRedo(jobs []Job) error {
	if len(o.Redo) == 0 {
		return nil
	}
	names := make(map[string]bool, len(jobs))
	for _, job := range jobs {
		names[job.Name] = true
	}
	if unknown := slices.DeleteFunc(slices.Clone(o.Redo), func(name string) bool { return names[name] }); len(unknown) > 0 {
		return &source.InvalidError{What: "job", Got: strings.Join(unknown, ", "), Why: "it is to run again, and is not in the list"}
	}
	return nil
}
