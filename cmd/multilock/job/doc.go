// Package job runs one command as a job: a process group of its own, with or without a terminal, that
// can be signalled and stopped and, on Linux, does not outlive a killed runner. It is independent of
// locks. The runner is the process that calls this package.
//
// This comment describes Unix; for Windows see job_windows.go.
//
// # What the job sees
//
// The job gets the three open files it is given, not copies through pipes, and the working
// directory, limits, umask, priority and signal mask of the runner. Signals have their default
// disposition, except those that were ignored when the runner was started: SIGHUP (nohup) and SIGINT,
// SIGQUIT along with SIGINT (a shell without job control ignores both for a command started with &),
// and those whose disposition Go does not change (SIGTSTP, SIGTTIN, SIGTTOU). Other signals have their
// default disposition in the job even if they were ignored: the Go runtime installs its handlers before
// any other code runs, and does not expose the previous state (initsig in runtime/signal_unix.go).
//
// # When the runner is killed
//
// On Linux the command itself dies with the runner by PR_SET_PDEATHSIG. That signal reaches one
// process; the rest of the job is ended by a guard, a second process of the same executable that
// notices the runner's end (see [Guard]). The guard starts when the job has run for 100 ms, to save its
// cost for short jobs. A runner killed in these first milliseconds can leave processes behind that the
// command had started by then. They still carry Spec.Mark, by which other processes can find them.
//
// # When the runner is stopped
//
// A runner that is stopped, by SIGSTOP, a debugger or a frozen control group, cannot end its job in
// time. With Spec.Allowance, which limits that time, the runner sends each allowance to the guard
// through the pipe that also reveals the runner's end. It never waits for the guard, and replaces a
// guard that does not read. When the last allowance is over, the guard ends the job: SIGTERM, and
// SIGKILL before another process may run. It waits slightly longer than the runner does, so that a
// job does not get the signals twice. A runner that is continued later finds its job ended. In the
// first 100 ms, before there is a guard, the job of a stopped runner goes on; nor does a guard help
// that is stopped as well while the job goes on.
//
// The stop key stops the job along with the runner. When the allowance is over, the guard ends the
// job: SIGTERM, and SIGCONT so that the job can act on that. A later fg would end it anyway, because
// MayResume would return false; and a stray SIGCONT cannot let it run at the same time as another job.
//
// # Which processes belong to the job
//
// The members of its process group, always. On Linux also descendants that left the group (setsid,
// a shell with job control): those whose chain of parents still leads to the job, and those that
// carry the environment entry Spec.Mark, which outlives every chain. A descendant that is cut off
// from its parents, left the group and cleared its environment is not found.
//
// PR_SET_CHILD_SUBREAPER would keep these chains complete, but only while the runner lives, so not for
// the guard. It would also make the runner the parent of every daemon that a job starts on purpose,
// and the runner would have to reap these.
package job
