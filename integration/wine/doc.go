// Package wine tests the command's build for Windows under Wine, with locks on servers: how jobs are
// started and ended with job objects. Wine stands in for Windows, so the tests show that the calls are
// right, not how Windows behaves. They run by hand, since they need Debian's wine64 and
// binutils-mingw-w64-x86-64:
//
//	MULTILOCK_WINE=yes go -C integration test ./wine
package wine
