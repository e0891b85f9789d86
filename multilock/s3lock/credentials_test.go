package s3lock_test

import "os"

// clearCredentials keeps tests from asking an instance for its role.
func clearCredentials() {
	_ = os.Setenv("AWS_ACCESS_KEY_ID", "test")
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", "test")
}
