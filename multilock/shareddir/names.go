package shareddir

import (
	"fmt"
	"slices"
)

// maxNames is how many bytes of names a listing may have: a million of the longest that
// people give, and whoever fills a directory with more takes no more memory.
const maxNames = 128 << 20

// Names are those of the names that list shows which are wanted, in order.
func Names(list func(visit func(name string) bool) error, wanted func(name string) bool) ([]string, error) {
	var names []string
	size := 0
	err := list(func(name string) bool {
		if wanted(name) {
			names = append(names, name)
			size += len(name)
		}
		return size <= maxNames
	})
	if err == nil && size > maxNames {
		err = fmt.Errorf("there are more than %d names; move unneeded files away", len(names)-1)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}
