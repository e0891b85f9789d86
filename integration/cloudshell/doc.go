// Package cloudshell tests the locks of multilock/cloudshell against fakecloudshell: the guarantees of
// every lock source, lost replies at every request, scripts that follow the convention as neighbours,
// and the cost in requests.
package cloudshell
