// Package process says who a process is and whether it still lives.
//
// A pid alone names nobody: the number is handed out again, it means different
// processes in different pid namespaces, and after a reboot it starts over. An
// [Identity] adds what is needed to tell all of those apart, and a judgement
// is only made where it can be proved; in every other case the answer is
// [Unknown], or [Alive] when something of that number is there and nothing
// proves that it is somebody else.
//
// On Linux everything comes from /proc, kill(2) with signal 0 and
// pidfd_open(2). Elsewhere it comes from gopsutil, and the limits of that are
// written at each field. No signal is ever delivered to anybody.
package process
