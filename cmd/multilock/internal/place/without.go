//go:build no_mongodb || no_cloudshell

package place

import "fmt"

// withoutSource is what a program says that was built without a source.
func withoutSource(what, tag string) error {
	return fmt.Errorf("this multilock was built without %s; use one that was built without the tag %s%s", what, tag, orBeside)
}
