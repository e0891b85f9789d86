package cloudshell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// A result is longer than one attribute. Its fields are cut into pieces, each of
// which is the value of a service of its own: ml1;result;i=0.2;r=...;d=PIECE.
const (
	maxPieces  = 8
	pieceRoom  = 200 // beside it there is what says which piece it is
	pieceStart = ";d="
)

// The fields of a result, beside those of an identity.
const (
	keyExit     = "x"
	keySignal   = "g"
	keyWhy      = "y"
	keyAttempt  = "a"
	keyFinal    = "f"
	keyTick     = "o" // nanoseconds of Unix time
	keyBegan    = "q" // the same, as are those below
	keyStarted  = "w"
	keyDuration = "d"
	keyOutput   = "z"
	keyEvery    = "v"
	keyMissed   = "V"
	keyWell     = "W" // when the last success ended
	keyPiece    = "i" // which piece of how many
)

// What people read is cut, so that there are never more than maxPieces.
const (
	maxResultUser    = 60
	maxResultCommand = 400
	maxResultWhy     = 400
	maxResultOutput  = 180
	maxResultEvery   = 60
)

// encodeResult gives the values of the pieces.
func encodeResult(brand string, r source.Result) ([]string, error) {
	fields := []field{
		{keyNonce, r.Token}, {keyUser, cut(r.User, maxResultUser)}, {keyCommand, cut(r.Command, maxResultCommand)},
		{keyExit, number(int64(r.Exit))}, {keySignal, r.Signal}, {keyWhy, cut(r.Why, maxResultWhy)}, {keyAttempt, number(int64(r.Attempt))},
		{keyTick, number(nanoseconds(r.Tick))}, {keyBegan, number(nanoseconds(r.Began))}, {keyStarted, number(nanoseconds(r.Start))},
		{keyDuration, number(int64(r.Duration))}, {keyOutput, cut(r.Output, maxResultOutput)},
		{keyEvery, cut(r.Every, maxResultEvery)},
	}
	if r.Missed > 0 {
		fields = append(fields, field{keyMissed, number(int64(r.Missed))})
	}
	if !r.Succeeded.IsZero() {
		fields = append(fields, field{keyWell, number(nanoseconds(r.Succeeded))})
	}
	if r.Final {
		fields = append(fields, field{keyFinal, "1"})
	}
	whole := encodeValue(kindResult, append(fields, identityFields(r.By)...))
	count := (len(whole) + pieceRoom - 1) / pieceRoom
	if count > maxPieces {
		return nil, fmt.Errorf("the result needs %d services; at most %d may be made", count, maxPieces)
	}
	var pieces []string
	for i := range count {
		head := encodeValue(kindResult, []field{{keyPiece, fmt.Sprintf("%d.%d", i, count)}, {keyBrand, brand}})
		pieces = append(pieces, head+pieceStart+whole[i*pieceRoom:min((i+1)*pieceRoom, len(whole))])
	}
	return pieces, nil
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanoseconds(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// parseResult reads a result. It never fails: what it does not understand becomes a
// result with Foreign set, whose job counts as run.
func parseResult(name string, pieces map[int]string) source.Result {
	r, err := decodeResult(pieces)
	if err != nil {
		r = source.Result{Foreign: err.Error()}
	}
	r.Name = name
	return r
}

func decodeResult(pieces map[int]string) (source.Result, error) {
	whole, err := joinPieces(pieces)
	if err != nil {
		return source.Result{}, err
	}
	v, err := parseValue(whole)
	if err != nil || v.kind != kindResult {
		return source.Result{}, errors.New("it is not a result of multilock")
	}
	by, err := parseIdentity(v.fields)
	n := numbers{fields: v.fields}
	r := source.Result{
		Token: v.fields[keyNonce], By: by, User: v.fields[keyUser], Command: v.fields[keyCommand],
		Exit: int(n.get(keyExit)), Signal: v.fields[keySignal], Why: v.fields[keyWhy], Output: v.fields[keyOutput], Attempt: int(n.get(keyAttempt)),
		Final: v.fields[keyFinal] != "", Duration: time.Duration(n.get(keyDuration)),
		Tick: fromNanoseconds(n.get(keyTick)), Began: fromNanoseconds(n.get(keyBegan)), Start: fromNanoseconds(n.get(keyStarted)),
		Every: v.fields[keyEvery], Missed: int(n.get(keyMissed)), Succeeded: fromNanoseconds(n.get(keyWell)),
	}
	if err := errors.Join(err, n.err); err != nil || r.Token == "" || r.Attempt < 1 {
		return source.Result{}, errors.New("it is not a whole result")
	}
	return r.Printable(), nil
}

// joinPieces puts the pieces together.
func joinPieces(pieces map[int]string) (string, error) {
	var whole strings.Builder
	for i := range len(pieces) {
		head, piece, found := strings.Cut(pieces[i], pieceStart)
		v, err := parseValue(head)
		if !found || err != nil || v.kind != kindResult || v.fields[keyPiece] != fmt.Sprintf("%d.%d", i, len(pieces)) {
			return "", errors.New("a part of it is missing, or damaged: " + strconv.Itoa(i))
		}
		whole.WriteString(piece)
	}
	return whole.String(), nil
}

// isPiece says whether a service is a piece of a result that this package wrote.
func isPiece(text string) bool {
	head, _, found := strings.Cut(text, pieceStart)
	v, err := parseValue(head)
	return found && err == nil && v.kind == kindResult
}
