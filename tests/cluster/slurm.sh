#!/bin/bash
# A real Slurm cluster (munged, slurmctld, slurmd) on the hosts of hosts.sh, without systemd. Each
# node is a host of its own; the login node is the fabric. Needs root, for slurmd changes users.
#
#   slurm.sh up DIR N [LINE]...   N nodes with 4 CPUs each (as Slurm believes); each LINE goes into
#                                 slurm.conf, or into plugstack.conf when it begins with "plugin "
#   slurm.sh exec DIR CMD...      runs CMD on the login node (srun, sbatch, salloc, scontrol, sinfo)
#   slurm.sh down DIR             kills all; DIR stays, with its logs
#
# DIR: hosts/ (hosts.sh), slurm.conf, log/, state/, munge/. AON_HOSTS_SHARED: folders below /tmp
# that all nodes see, separated by spaces.
# Packages: slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix2.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export PATH=$PATH:/usr/sbin:/sbin

die() {
  echo "slurm: $*" >&2
  tail -n 12 "$dir"/log/* >&2 2>/dev/null || true
  exit 1
}

on() { # HOST CMD...
  "$here/hosts.sh" exec "$dir/hosts" "$@"
}

daemon() { # NAME HOST CMD...
  local name=$1 host=$2
  shift 2
  on "$host" setsid env SLURM_CONF="$dir/slurm.conf" "$@" </dev/null >"$dir/log/$name.out" 2>&1 &
}

wait_for() { # CMD...: at most 20 s
  for ((i = 0; i < 200; i++)); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.1
  done
  die "not in time: $*"
}

configure() { # N LINE...
  local n=$1 user line
  shift
  user=$(id -un)
  cat >"$dir/slurm.conf" <<CONF
ClusterName=simulated
SlurmctldHost=login(10.77.0.254)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge/socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
# no cgroups and no accounting database
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=2
# jobs whose start time has come are looked for every 5 s
SchedulerParameters=sched_interval=5,bf_interval=5
MailProg=/bin/true
PlugStackConfig=$dir/plugstack.conf
# the CPUs below, also where the machine has fewer
SlurmdParameters=config_overrides
CONF
  : >"$dir/plugstack.conf"
  for ((i = 1; i <= n; i++)); do
    mkdir -p "$dir/spool-n$i"
    echo "NodeName=n$i NodeAddr=10.77.0.$i CPUs=4 CoresPerSocket=4 RealMemory=1000"
  done >>"$dir/slurm.conf"
  echo "PartitionName=all Nodes=n[1-$n] Default=YES MaxTime=INFINITE State=UP" >>"$dir/slurm.conf"
  for line in "$@"; do
    if [[ $line == "plugin "* ]]; then
      echo "${line#plugin }" >>"$dir/plugstack.conf"
    else
      echo "$line" >>"$dir/slurm.conf"
    fi
  done
}

up() { # N LINE...
  local n=$1 munge=$dir/munge
  ((EUID == 0)) || die "needs root: slurmd starts jobs as their users"
  [[ ! -e $dir/hosts ]] || die "$dir is in use"
  mkdir -p "$dir"/{hosts,munge,state,log}
  chmod 755 "$dir" "$dir/munge"
  head -c 1024 /dev/urandom >"$munge/key"
  chmod 600 "$munge/key"
  configure "$@"
  # shellcheck disable=SC2086
  "$here/hosts.sh" up "$dir/hosts" "$n" "$dir" ${AON_HOSTS_SHARED:-}
  daemon munged login munged --foreground --force --num-threads=2 --socket="$munge/socket" \
    --key-file="$munge/key" --pid-file="$munge/pid" --log-file="$dir/log/munged.log" \
    --seed-file="$munge/seed"
  wait_for test -S "$munge/socket"
  daemon slurmctld login slurmctld -D -f "$dir/slurm.conf"
  for ((i = 1; i <= n; i++)); do
    daemon "slurmd-n$i" "n$i" slurmd -D -f "$dir/slurm.conf"
  done
  wait_for all_idle "$n"
}

all_idle() { # N
  local idle
  idle=$(on login env SLURM_CONF="$dir/slurm.conf" timeout 3 sinfo -h -N -t idle -o %N)
  [[ $(wc -w <<<"$idle") == "$1" ]]
}

action=${1:-}
dir=${2:-}
[[ -d $dir ]] || {
  echo "usage: slurm.sh up|exec|down DIR ..., with a DIR that exists" >&2
  exit 2
}
shift 2
case $action in
  up) up "$@" ;;
  exec) on login env SLURM_CONF="$dir/slurm.conf" AON_HOSTS="$dir/hosts" "$@" ;;
  down) "$here/hosts.sh" down "$dir/hosts" ;;
  *) die "unknown action $action" ;;
esac
