// Package etcdlab is etcd for tests: a cluster of members that are processes, and can be killed,
// stopped and cut off from each other, and a proxy that counts requests, delays them, and loses
// them or their answers.
package etcdlab
