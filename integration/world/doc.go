// Package world runs tests in a machine of their own: Linux namespaces with the Debian packages that
// they request, a loopback network, processes, mounts and a host name, all of which end with the tests.
// Its root directory is the machine's, overlaid with packages that are only unpacked, never installed,
// so nothing on the machine is changed or started. It needs root, overlayfs and apt-get.
package world
