package explore

// arena keeps many small values, each by its number, from 1 on. They never move: it grows without copying,
// and a number takes half the space of a pointer.
type arena[T any] struct {
	chunks [][]T
	count  uint32
}

const chunk = 1 << 12

// add adds a zero value.
func (a *arena[T]) add() (number uint32) {
	a.count++
	if int(a.count/chunk) == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, chunk))
	}
	return a.count
}

func (a *arena[T]) at(number uint32) *T { return &a.chunks[number/chunk][number%chunk] }
