// Package wine runs the command's build for Windows, with locks on servers: how jobs are
// started and ended there, by job objects. Wine stands in for Windows, so what is shown is
// that the calls are right, not what Windows makes of them. By hand, for it takes wine64
// and binutils-mingw-w64-x86-64 of Debian:
//
//	MULTILOCK_WINE=yes go -C integration test ./wine
package wine
