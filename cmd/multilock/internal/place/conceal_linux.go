package place

import "github.com/multilock/go/internal/procfs"

func forgetEnviron(names ...string) error { return procfs.Proc.ForgetEnviron(names...) }
