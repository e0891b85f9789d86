# Sourced by the tools of the lab: the location of their state, and error messages.
# shellcheck shell=bash

hosts=/run/lab/hosts

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

usage() {
	sed -n '/^# usage:/,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

need_host() {
	[ -d "$hosts/$1" ] || die "unknown host $1; host list prints all hosts"
}

host_pid() {
	cat "$hosts/$1/pid" 2>/dev/null || die "$1 is not running: host boot $1"
}

# cgroup NAME: the control group of all processes of a host, to stop and kill them together. Each boot has a new one,
# because a process that hangs in the kernel may outlive a crash.
cgroup() {
	echo "/sys/fs/cgroup/$1.$(cat "$hosts/$1/life")"
}

# port NAME: the server's end of the host's network link.
port() {
	echo "p-$1"
}

# in_net NAME COMMAND...: runs a command in the host's network namespace, with the files of the server.
in_net() {
	local pid
	pid=$(host_pid "$1")
	shift
	nsenter --target "$pid" --net -- "$@"
}
