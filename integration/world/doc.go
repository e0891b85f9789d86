// Package world gives tests a machine of their own on this one: Debian's packages that they
// ask for, the network's loopback, processes, mounts and a name, all of it in namespaces that
// end with the tests. The root directory is that of the machine with a layer of packages that
// are unpacked and not installed, so nothing on the machine is changed or started. It takes
// root, overlayfs and apt-get.
package world
