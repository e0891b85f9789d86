// Package lockgroup builds on the locks of a group what a cluster's batch needs.
//
// A [Barrier] waits until nothing in the group is held, or until the jobs that
// it was told of are done. A slot ([AcquireSlot]) is one of N places under one
// name, for at most N holders at a time. [Once] runs a job once per name, or once
// per tick ([Every]), over all hosts together, and records how it ended. Lists of jobs
// are in package batch. [Attempts] is the loop under all of these, and under the command
// "multilock run": it runs a job under its lock as often as a [Plan] says.
//
// A barrier takes nobody's word for being alive: a holder that died is found, on
// the evidence that also lets a contender take its lock, and reported with it
// instead of being waited for for ever.
package lockgroup
