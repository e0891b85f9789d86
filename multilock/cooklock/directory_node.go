package cooklock

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/vfs"
)

// The parts of an epoch. Its file never changes.
const (
	valueFile = "value"
	liveDir   = "live"
	nextDir   = "next"
)

// node is what the file of an epoch holds: one line about the value, and the value.
//
//	multilock register 1 TOKEN LENGTH EARLIER...
type node struct {
	token string // of the swap that put the value there
	// earlier are the tokens of the swaps before that, the last one first: whoever
	// was not told what became of its own can still learn it for a while.
	earlier []string
	value   []byte // nil if nobody ever swapped
}

const (
	nodeHead = "multilock register 1"
	// untouched is the length of a value that nobody ever put there.
	untouched = "-"
	// maxEarlier is how many swaps are remembered.
	maxEarlier = 32
)

// after is the node of a swap that replaces this one's value.
func (n node) after(token string, value []byte) node {
	earlier := append([]string{n.token}, n.earlier...)
	return node{token: token, value: value, earlier: earlier[:min(len(earlier), maxEarlier)]}
}

// history is the token of the swap so many before this one's; "" if that is too
// long ago.
func (n node) history(back uint64) string {
	switch {
	case back == 0:
		return n.token
	case back <= uint64(len(n.earlier)):
		return n.earlier[back-1]
	}
	return ""
}

func (n node) encode() []byte {
	length := untouched
	if n.value != nil {
		length = strconv.Itoa(len(n.value))
	}
	head := append([]string{nodeHead, n.token, length}, n.earlier...)
	return append([]byte(strings.Join(head, " ")+"\n"), n.value...)
}

// errDamaged says that the file of an epoch is not as it was written.
var errDamaged = errors.New("the register's file is damaged or not one of multilock's")

// decodeNode refuses what is not whole: the length tells.
func decodeNode(data []byte) (node, error) {
	head, value, found := bytes.Cut(data, []byte("\n"))
	rest, ours := strings.CutPrefix(string(head), nodeHead+" ")
	fields := strings.Split(rest, " ")
	if !found || !ours || len(fields) < 2 || len(fields) > 2+maxEarlier || fields[0] == "" {
		return node{}, errDamaged
	}
	n := node{token: fields[0], earlier: fields[2:]}
	if fields[1] == untouched && len(value) == 0 {
		return n, nil
	}
	if length, err := strconv.Atoi(fields[1]); err != nil || length != len(value) || length == 0 {
		return node{}, errDamaged
	}
	n.value = value
	return n, nil
}

// maxNode is more than any file of an epoch has.
const maxNode = MaxValue + 4<<10

// readNode reads the file of an epoch. It is closed at once: a file that is open
// when it is removed leaves a leftover on NFS.
func readNode(epoch vfs.Dir) (node, error) {
	f, err := epoch.Open(valueFile)
	if err != nil {
		return node{}, err
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxNode))
	if err != nil {
		return node{}, err
	}
	return decodeNode(data)
}

// writeNode makes an epoch in the directory name of parent, which nobody else
// knows: its file, on stable storage, and live.
func writeNode(parent vfs.Dir, name string, n node) error {
	if err := parent.Mkdir(name, dirMode); err != nil {
		return err
	}
	f, err := parent.Create(name+"/"+valueFile, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(n.encode())
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return parent.Mkdir(name+"/"+liveDir, dirMode)
}
