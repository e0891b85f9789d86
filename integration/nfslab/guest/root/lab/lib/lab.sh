# Common to the lab's tools: where state lives, and how errors are told. To be sourced.
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
	[ -d "$hosts/$1" ] || die "no host $1"
}

host_pid() {
	cat "$hosts/$1/pid" 2>/dev/null || die "$1 is down"
}

# All of a host's processes are in one control group, so that they can be stopped and killed together. Each life of a
# host has its own: a process that hangs in the kernel can outlast the power cut.
cgroup() {
	echo "/sys/fs/cgroup/$1.$(cat "$hosts/$1/life")"
}

# The server's end of the host's cable.
port() {
	echo "p-$1"
}

# Runs a command in the host's network, with the tools and files of the server.
in_net() {
	local pid
	pid=$(host_pid "$1")
	shift
	nsenter --target "$pid" --net -- "$@"
}
