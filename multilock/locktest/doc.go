// Package locktest has the tests that every lock source must pass, and a checker for histories of locks
// that processes recorded. It is for tests only.
//
// A source's own test calls [Run] and [Benchmark] with a [Fixture] that opens the source. Processes under
// test write [Event] lines with a [Recorder]; [Check] then checks whether the histories of all of them
// together are possible.
package locktest
