#!/bin/sh
# TaskProlog of AON (slurm.conf: TaskProlog=/PREFIX/share/aon/slurm/aon-taskprolog.sh): switches
# recording on for each task. Runs as the job's user, before each task of each step.
#
# What it must keep, for Slurm makes the task fail, or wait for ever, where a TaskProlog does:
#   exit status 0 always; an end within a second, whatever hangs; no child that holds stdout;
#   either all lines or none, and nothing on stderr.
# Slurm takes lines "export NAME=VALUE" and "unset NAME" from its stdout; aon-task writes them:
# where AON is off, those that take back what the task has from another job.
preload=${LD_PRELOAD-}
unset LD_PRELOAD # nothing is preloaded into what runs here
case $0 in
  */share/aon/slurm/*) prefix=${0%/share/aon/slurm/*} ;;
  *) prefix=/opt/aon ;; # of a copy elsewhere: say here where AON is installed
esac
PATH=/usr/bin:/bin
export AON_USER_PRELOAD="$preload"
lines=$(timeout -s KILL 1 "$prefix/bin/aon-task" 2>/dev/null </dev/null) || exit 0
[ -z "$lines" ] || printf '%s\n' "$lines"
exit 0
