// Package lockgroup builds on the locks of a group what a cluster's batch needs.
//
// A [Barrier] waits until nothing in the group is held, or until given jobs are done. A slot
// ([AcquireSlot]) is one of N places under one name, for at most N holders at a time. [Once] runs a
// job once per name, or once per tick ([Every]), over all hosts together, and records how it ended.
// Package batch runs lists of jobs. [Attempts] is the loop under all of these and under the command
// "multilock run": it runs a job under its lock as often as a [Plan] says.
//
// A barrier does not wait for ever for a holder that died. It finds the dead holder by the evidence
// that also lets a contender take the lock, and reports it with that evidence.
package lockgroup
