// Package lockgroup provides what batch work on a cluster needs, on top of the locks of a group.
//
// A [Barrier] waits until nothing in the group is held, or until given jobs are done. A slot
// ([AcquireSlot]) is one of N places under one name, for at most N holders at a time. [Once] runs a
// job once per name, or once per tick ([Every]), across all hosts together, and records how it ended.
// Package batch runs lists of jobs. [Attempts] is the loop under Once and the command "multilock
// run": it runs a job under its lock as often as a [Plan] allows. Package batch follows the same Plan.
//
// A barrier does not wait for ever for a dead holder: it inspects holders as a contender does, and
// reports dead ones.
package lockgroup
