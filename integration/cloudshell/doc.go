// Package cloudshell tests the lock of multilock/cloudshell against a server, the
// one of fakecloudshell: what every lock source guarantees, lost answers at every
// request, scripts that keep to the convention as neighbours, and what it costs.
package cloudshell
