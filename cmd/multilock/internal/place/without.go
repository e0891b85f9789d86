//go:build no_mongodb || no_cloudshell || no_etcd || no_postgres || no_s3

package place

import "fmt"

// without returns the error of a program that was built without a source.
func without(what string) error {
	return fmt.Errorf("%s is not built into this program; use multilock-full", what)
}
