// Package locktest has the tests that every lock source must pass, and a checker
// for what processes saw of their locks. It is for tests only.
//
// A source's own test calls [Run] and [Benchmark] with a [Fixture] that says how
// to open it. Processes under test write [Event] lines with a [Recorder]; [Check]
// then says whether the histories of all of them together can be true.
package locktest
