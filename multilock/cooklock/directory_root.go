package cooklock

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// root is a register's directory, open, and the staging directory beside it. It
// holds epochs and nothing else, and is never empty: it comes into being with
// epoch 0, and an epoch loses its name only when the next one has its own.
type root struct {
	vfs.Dir
	place   *Directory
	staging vfs.Dir
}

func (r *root) close() {
	_ = r.Close()
	if r.staging != nil {
		_ = r.staging.Close()
	}
}

// findRoot opens a register that somebody has used, for looking at it.
func (d *Directory) findRoot(name string) (*root, error) {
	group, err := d.openGroup()
	if err != nil {
		return nil, err
	}
	defer group.Close() //nolint:errcheck // a directory
	dir, err := d.fresh(group, name)
	if err != nil {
		return nil, err
	}
	return &root{Dir: dir, place: d}, nil
}

// makeRoot opens a register for a swap, made if nobody has used it.
func (d *Directory) makeRoot(name string) (*root, error) {
	staging, err := d.openStaging()
	if err != nil {
		return nil, err
	}
	dir, err := d.placeRoot(staging, name)
	if err != nil {
		return nil, errors.Join(err, staging.Close())
	}
	return &root{Dir: dir, place: d, staging: staging}, nil
}

// placeRoot opens the register's directory. If there is none, it is prepared with
// epoch 0 in it and renamed into place: that fails if another one was quicker,
// because that one is not empty. Whatever the rename answers, what is there then
// is the register.
func (d *Directory) placeRoot(staging vfs.Dir, name string) (vfs.Dir, error) {
	group, err := d.makeGroup()
	if err != nil {
		return nil, err
	}
	defer group.Close() //nolint:errcheck // a directory
	dir, err := d.fresh(group, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := d.checkFileSystem(staging); err != nil {
		return nil, err
	}
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	placing := d.stageRoot(staging, token)
	if placing == nil {
		if placing = staging.Rename(token, group, name); placing == nil && d.kind.Local {
			placing = group.Sync()
		}
	}
	if placing != nil {
		_ = moveAway(staging, token, staging) // unless it is in place after all
	}
	dir, err = d.fresh(group, name)
	if err != nil && placing != nil {
		return nil, placing
	}
	return dir, err
}

func (d *Directory) stageRoot(staging vfs.Dir, token string) error {
	if err := staging.Mkdir(token, dirMode); err != nil {
		return err
	}
	return writeNode(staging, token+"/"+epochName(0), node{token: token})
}

func epochName(number uint64) string { return strconv.FormatUint(number, 10) }

// epochs are the numbers of those that have a name, in no order. A listing that
// was made while an epoch was replaced by the next one may show neither.
func (r *root) epochs() ([]uint64, error) {
	names, err := r.List()
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && epochName(n) == name {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// epoch is a public epoch, open.
type epoch struct {
	vfs.Dir
	number uint64
	node
}

// newest opens the last epoch as far as can be seen. It may not be the last any
// more when it is open.
func (r *root) newest() (*epoch, error) {
	for range maxRounds {
		numbers, err := r.epochs()
		if err != nil {
			return nil, err
		}
		if len(numbers) == 0 {
			continue
		}
		e, err := r.openLast(slices.Max(numbers))
		if !vfs.Gone(err) {
			return e, err
		}
	}
	return nil, errors.New("no epoch can be opened; if nobody can be using the lock, remove this directory: " + r.Path())
}

// openLast opens an epoch, or one after it, which a listing from a client's cache
// may not show.
func (r *root) openLast(number uint64) (*epoch, error) {
	e, err := r.open(number)
	for err == nil {
		after, err := r.open(number + 1)
		if vfs.Gone(err) {
			return e, nil
		}
		_ = e.Close()
		if err != nil {
			return nil, err
		}
		e, number = after, number+1
	}
	return nil, err
}

func (r *root) open(number uint64) (*epoch, error) {
	dir, err := r.place.fresh(r.Dir, epochName(number))
	if err != nil {
		return nil, err
	}
	n, err := readNode(dir)
	if err != nil {
		_ = dir.Close()
		if errors.Is(err, errDamaged) {
			err = damaged(dir.Path(), err)
		}
		return nil, err
	}
	return &epoch{Dir: dir, number: number, node: n}, nil
}

func damaged(path string, err error) error {
	return &source.InvalidError{
		What: "register", Got: path, Err: err,
		Why: err.Error() + "; stop everybody who uses this lock, wait for its period, and remove the directory above",
	}
}

// successor is the value that was swapped in after this epoch's, as the server
// knows it; the error is Gone if there is none here: none yet, or it has become an
// epoch of its own.
func (r *root) successor(e *epoch) (node, error) {
	dir, err := r.place.fresh(e.Dir, nextDir)
	if err != nil {
		return node{}, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return readNode(dir)
}
