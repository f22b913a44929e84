#!/bin/sh
# Epilog of AON (slurm.conf: Epilog=/PREFIX/share/aon/slurm/aon-epilog.sh), as root on each node:
# has the archives of a job finished whose agents were killed with it, and writes one line to syslog
# about who used AON. What touches the job's files runs as the job's user, in a session of its own
# with a time limit of its own; the Epilog waits only until that session stands.
#
# Slurm drains the node where an Epilog fails or takes too long: exit status 0 always. It kills the
# script's process group at its end, and waits for whoever holds its stdout.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
trap 'exit 0' TERM INT HUP
case $0 in
  */share/aon/slurm/*) prefix=${0%/share/aon/slurm/*} ;;
  *) prefix=/opt/aon ;; # of a copy elsewhere: say here where AON is installed
esac
finish=$prefix/share/aon/slurm/aon-finish.sh
case ${SLURM_JOB_ID:-x} in *[!0-9]*) exit 0 ;; esac
# Whether $finish is there is not asked here: a file system that hangs must hang within the limit.
[ -n "${SLURM_JOB_USER-}" ] || exit 0
set -- "$SLURM_JOB_ID"
# Tasks of a heterogeneous job know its first component's number, whichever they are of.
case ${SLURM_HET_JOB_ID:-x} in
  *[!0-9]* | "$SLURM_JOB_ID") ;;
  *) set -- "$@" "$SLURM_HET_JOB_ID" ;;
esac
start() { # a line of each when it has left this script's group
  for job; do
    setsid runuser -u "$SLURM_JOB_USER" -- timeout -k 5 600 "$finish" "$prefix" "$job" \
      "${SLURM_JOB_WORK_DIR:-/}" </dev/null 2>/dev/null &
  done
}
start "$@" | timeout -k 1 5 head -n $# >/dev/null 2>&1
exit 0
