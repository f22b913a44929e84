#!/bin/sh
# Prolog of AON (slurm.conf: Prolog=/PREFIX/share/aon/slurm/aon-prolog.sh), as root on each node:
# tries AON on a tiny program once per boot and version, and switches it off on this node where that
# fails (aon-canary), and, where /etc/aon/node-service exists, starts the node's service if
# none runs, or ends it where that file says "off" (aon-node; a site with systemd enables its unit
# instead).
#
# Slurm drains the node where a Prolog fails or takes too long: exit status 0 always, and 9 s at
# most: the canary once per boot (three times where it is late), the service's start at each job.
# Slurm gives it no search path.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
trap 'exit 0' TERM INT HUP # only SIGKILL is an error for Slurm, and nothing can be done about it
case $0 in
  */share/aon/slurm/*) prefix=${0%/share/aon/slurm/*} ;;
  *) prefix=/opt/aon ;; # of a copy elsewhere: say here where AON is installed
esac
# SECONDS COMMAND...: waits for it no longer, also where a file system that hangs does not let it be
# killed: then it is left behind, in a session of its own.
in_time() {
  {
    # shellcheck disable=SC2016 # for the inner shell
    setsid sh -c 'timeout -k 1 "$0" "$@" >/dev/null 2>&1; echo' "$@" </dev/null 2>/dev/null &
  } | timeout -k 1 $(($1 + 1)) head -n 1 >/dev/null 2>&1
}
# Whether it is there is not asked here: a file system that hangs must hang within the limit.
in_time 5 "$prefix/bin/aon-canary"
service=${AON_SITE_DIR:-/etc/aon}/node-service
[ -e "$service" ] || exit 0
word=--background
[ "$(head -c 3 "$service" 2>/dev/null)" != off ] || word=--end
in_time 2 "$prefix/bin/aon-node" $word ${AON_NODE_SOCKET:+--socket "$AON_NODE_SOCKET"}
exit 0
