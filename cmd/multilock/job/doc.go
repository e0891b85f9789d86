// Package job runs one command as a job: a process group of its own, under a
// terminal or not, that can be signalled, stopped and, on Linux, does not
// outlive a killed runner. It knows nothing of locks.
//
// What follows is about Unix; for Windows see job_windows.go.
//
// # What the job sees
//
// The job gets the three open files it is given, not copies through pipes, and
// the working directory, limits, umask, priority and signal mask of the runner.
// Signals are at their default, except those that were ignored when the runner
// was started: SIGHUP (nohup) and SIGINT, SIGQUIT along with SIGINT (a command
// started with & by a shell without job control gets both), and those of which
// Go leaves the disposition alone (SIGTSTP, SIGTTIN, SIGTTOU). Other signals
// are at their default in the job even if they were ignored: the Go runtime
// installs its handlers over them before any code of ours runs and keeps what it
// found to itself (initsig in runtime/signal_unix.go).
//
// # When the runner is killed
//
// On Linux the command itself dies with the runner by PR_SET_PDEATHSIG. That
// signal reaches one process; the rest of the job is ended by a guard, a second
// process of our own executable that notices the runner's end (see [Guard]). The
// guard is started when the job has lived for 100 ms, so that short jobs do not
// pay for it. A runner killed within these first milliseconds can leave
// processes behind that the command had started by then. They still carry
// Spec.Mark, and whoever looks for that sees that they live.
//
// # When the runner is stopped
//
// A runner that does not run, because of SIGSTOP, a debugger or a frozen control
// group, cannot end its job in time. If Spec.Allowance says what time that is, the
// guard knows it as well: each allowance is told to it through the pipe that also tells
// of the runner's end, without ever waiting for it; a guard that takes no news is
// replaced. When the last allowance is over, it ends the job: SIGTERM, and SIGKILL
// before others may be at work. It waits a moment longer than the runner does, so that
// a job is not told twice. A runner that is continued after that finds its job ended.
// Within the first 100 ms, before there is a guard, a stopped runner leaves its job
// alone; and nobody helps where all three are stopped and only the job goes on.
//
// The stop key stops the job along with the runner. It may stay so for as long as the
// allowance lasts; then the guard ends it: SIGTERM, and SIGCONT, for it to act on
// that. Nothing is lost by it, for when fg comes later than that MayResume would say
// no, and the job would be ended at that moment; and it is safe from a stray SIGCONT
// that would let it go on beside others.
//
// # Who belongs to the job
//
// The members of its process group, always. On Linux also descendants that left
// the group (setsid, a shell with job control): those whose chain of parents
// still leads to the job, and those that carry the environment entry Spec.Mark,
// which outlives every chain. A descendant that is cut off from its parents,
// left the group and cleared its environment is not found.
//
// PR_SET_CHILD_SUBREAPER would keep the chains whole, but only while the runner
// lives, so not for the guard; it would also make the runner the parent of every
// daemon that a job leaves behind on purpose, and oblige it to reap strangers.
package job
