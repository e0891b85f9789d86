// Package wine tests the command's build for Windows under Wine, with locks on servers: how job objects
// start and end jobs. Wine stands in for Windows, so the tests show that the calls are right, not how
// Windows behaves. They run by hand, since they need wine64 and binutils-mingw-w64-x86-64 of Debian:
//
//	MULTILOCK_WINE=yes go -C integration test ./wine
package wine
