// Package clitest drives the multilock command in tests: it builds the binary,
// starts it, and reads what it says. It is for tests only.
//
// A package's TestMain calls [Main]; its tests prepare the binary with [Command], and
// start it with [Start] or [Run].
package clitest

import "time"

// Watchdog bounds what would otherwise hang. Nothing that passes comes near it.
const Watchdog = time.Minute
