#!/bin/sh
# aon-finish.sh PREFIX JOB FOLDER: finishes the archives of a Slurm job in the folder it was
# submitted from, as its user; called by aon-epilog.sh. An agent that still works on a directory is
# given time: aon finalize exits with 3 then.
prefix=$1
job=$2
folder=$3
echo started
exec >/dev/null
count=0
for dir in "$folder/aon-$job".* "$folder/aon-$job"-*; do
  [ -d "$dir" ] && [ -O "$dir" ] || continue
  count=$((count + 1))
  # Done already, unless an agent has left its mark or no archive is there.
  [ ! -e "$dir/aon.json" ] || [ -d "$dir/agents" ] || continue
  for pause in 2 4 8 16 30 60 0; do
    nice -n 19 "$prefix/bin/aon" finalize "$dir" >/dev/null 2>&1
    [ $? = 3 ] || break
    sleep "$pause"
  done
done
[ $count = 0 ] || logger -t aon "job=$job user=$(id -un) directories=$count" 2>/dev/null
exit 0
