#!/bin/sh
# aon-finish.sh PREFIX JOB FOLDER: finishes the archives of a Slurm job, as its user: those in the
# folder it was submitted from, and those that were noted on this node when their agents began.
# Called by aon-epilog.sh. An agent that still works on a directory is given time: aon finalize
# exits with 3 then.
prefix=$1
job=$2
folder=$3
noted=/tmp/aon-$(id -u)/slurm-$job
echo started
exec >/dev/null

is_own() { # what is noted, and the folder where it lies
  for path in "${noted%/*}" "$noted"; do
    [ -e "$path" ] && [ ! -h "$path" ] && [ -O "$path" ] || return 1
  done
}

directories() { # of this user; a link beside them is nobody's output, a noted one may be
  for dir in "$folder/aon-$job".* "$folder/aon-$job"-*; do
    [ ! -d "$dir" ] || [ -h "$dir" ] || printf '%s\n' "$dir"
  done
  ! is_own || cat "$noted"
}

found=$(directories | sort -u | while IFS= read -r dir; do
  [ ! -d "$dir" ] || [ ! -O "$dir" ] || printf '%s\n' "$dir"
done)
# First of all: what comes now may run out of time.
[ -z "$found" ] || logger -t aon \
  "job=$job user=$(id -un) directories=$(printf '%s\n' "$found" | wc -l)" 2>/dev/null

printf '%s\n' "$found" | while IFS= read -r dir; do
  [ -n "$dir" ] || continue
  for pause in 2 4 8 16 30 60 0; do
    # Done, perhaps by another node, unless an agent has left its mark or no archive is there.
    [ ! -e "$dir/aon.json" ] || [ -d "$dir/agents" ] || break
    nice -n 19 "$prefix/bin/aon" finalize --if-needed "$dir" </dev/null >/dev/null 2>&1
    [ $? = 3 ] || break
    sleep "$pause"
  done
done
! is_own || rm -f "$noted"
exit 0
