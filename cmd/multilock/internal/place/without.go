//go:build no_mongodb || no_cloudshell || no_etcd || no_postgres

package place

import "fmt"

// without is what a program says that was built without a source.
func without(what string) error {
	return fmt.Errorf("this multilock has no %s; call multilock-full instead, which has", what)
}
