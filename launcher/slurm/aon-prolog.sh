#!/bin/sh
# Prolog of AON (slurm.conf: Prolog=/PREFIX/share/aon/slurm/aon-prolog.sh), as root on each node:
# tries AON on a tiny program once per boot and version, and switches it off on this node where that
# fails (aon-canary), and, where /etc/aon/node-service exists, starts the node's service if
# none runs, or ends it where that file says "off" (aon-node; a site with systemd enables its unit
# instead).
#
# Slurm drains the node where a Prolog fails or takes too long: exit status 0 always, and 9 s at
# most, once per boot. Slurm gives it no search path.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
trap 'exit 0' TERM INT HUP # only SIGKILL is an error for Slurm, and nothing can be done about it
case $0 in
  */share/aon/slurm/*) prefix=${0%/share/aon/slurm/*} ;;
  *) prefix=/opt/aon ;; # of a copy elsewhere: say here where AON is installed
esac
# Whether it is there is not asked here: a file system that hangs must hang within the limit.
timeout -k 1 5 "$prefix/bin/aon-canary" </dev/null >/dev/null 2>&1
service=${AON_SITE_DIR:-/etc/aon}/node-service
[ -e "$service" ] || exit 0
word=--background
[ "$(head -c 3 "$service" 2>/dev/null)" != off ] || word=--end
timeout -k 1 2 setsid "$prefix/bin/aon-node" $word ${AON_NODE_SOCKET:+--socket "$AON_NODE_SOCKET"} \
  </dev/null >/dev/null 2>&1
exit 0
