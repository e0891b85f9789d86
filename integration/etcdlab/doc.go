// Package etcdlab runs etcd for tests: a cluster whose members are processes that can be killed, paused
// and cut off from each other, and a proxy that counts requests, delays them, and loses them or their
// replies.
package etcdlab
