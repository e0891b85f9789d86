package explore

// arena keeps many small things, each by its number, from 1 on. They stay where they are: it grows
// without a copy of all that there is, and a number takes half of what a pointer does.
type arena[T any] struct {
	chunks [][]T
	count  uint32
}

const chunk = 1 << 12

// add has room for one more.
func (a *arena[T]) add() (number uint32) {
	a.count++
	if int(a.count/chunk) == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, chunk))
	}
	return a.count
}

func (a *arena[T]) at(number uint32) *T { return &a.chunks[number/chunk][number%chunk] }
