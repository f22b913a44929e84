#!/bin/bash
# Several hosts on one machine, made of Linux namespaces: the nodes of the cluster tests.
#
#   hosts.sh up DIR N [SHARED]...   makes the hosts n1..nN; SHARED: folders below /tmp all see
#   hosts.sh exec DIR HOST CMD...   runs CMD on HOST, in the current folder
#   hosts.sh kill DIR HOST          powers HOST off: kills everything on it
#   hosts.sh down DIR               kills all; DIR stays
#
# An outer "fabric" (pid, net, mount, uts and ipc namespace; itself the host "login", .254) holds a
# bridge; each host is a net, uts, ipc and mount namespace in it:
#
#     fabric: br0 10.77.0.254 ---- v1 | eth0 10.77.0.1  n1   own name, /tmp, /dev/shm, /sys,
#                             '--- v2 | eth0 10.77.0.2  n2   abstract sockets; pids, CPUs and /proc
#                                                            are those of all hosts
#
# Nothing is made in the caller's network, no route leads out, and the kernel removes all of it when
# the fabric's first process dies. Runs as root, and as a user where user namespaces are allowed.
# Needs unshare and nsenter (util-linux) and ip (iproute2).
set -euo pipefail
self=$(readlink -f "$0")
net=10.77.0

die() {
  echo "hosts: $*" >&2
  exit 1
}

# Processes are dear on some machines: what waits and compares starts none.
never=
pause() { # SECONDS
  [[ -n $never ]] || exec {never}<> <(:)
  read -rt "$1" -u "$never" || true
}

start_host() { # DIR I: as the fabric's first process
  local dir=$1 i=$2 pid
  mkdir -p "$dir/n$i/tmp"
  chmod 1777 "$dir/n$i/tmp"
  unshare --net --uts --ipc --mount "$self" __host "$dir" "$i" </dev/null \
    >"$dir/n$i/log" 2>&1 &
  pid=$!
  echo $pid >"$dir/n$i/pid"
  while [[ /proc/$pid/ns/net -ef /proc/self/ns/net ]]; do pause 0.01; done
  ip link add "v$i" type veth peer name eth0 netns "$pid"
  ip link set "v$i" master br0 up
  until [[ -e $dir/n$i/up ]]; do
    kill -0 $pid 2>/dev/null || die "$(cat "$dir/n$i/log")"
    pause 0.01
  done
}

fabric() { # DIR N
  local dir=$1 n=$2 i
  trap 'exit 0' TERM INT
  mount --make-rprivate /
  mount -t proc proc /proc
  hostname login
  ip link set lo up
  ip link add br0 type bridge
  ip addr add $net.254/24 dev br0
  ip link set br0 up
  {
    echo "127.0.0.1 localhost"
    echo "$net.254 login"
    for ((i = 1; i <= n; i++)); do echo "$net.$i n$i"; done
  } >"$dir/hosts"
  mount --bind "$dir/hosts" /etc/hosts
  for ((i = 1; i <= n; i++)); do start_host "$dir" "$i"; done
  : >"$dir/ready"
  while :; do # reaps what its hosts leave behind
    wait -n || true
    sleep 1 &
    wait $! || true
  done
}

own_sys() { # DIR: /sys/class/net shows this host's interfaces; what is mounted below /sys stays
  local keep mounted
  keep=$(mktemp -d "$1/sys.XXXX")
  mount --rbind /sys "$keep"
  if mount -t sysfs sysfs /sys 2>/dev/null; then
    for mounted in fs/cgroup kernel/debug kernel/tracing fs/bpf; do
      if mountpoint -q "$keep/$mounted"; then
        mount --rbind "$keep/$mounted" "/sys/$mounted" 2>/dev/null || true
      fi
    done
  fi
  umount -l "$keep"
  rmdir "$keep"
}

host() { # DIR I
  local dir=$1 i=$2 path tmp=$1/n$2/tmp
  hostname "n$i"
  mount --make-rprivate /
  until ip link show eth0 >/dev/null 2>&1; do pause 0.01; done
  ip link set lo up
  ip addr add "$net.$i/24" dev eth0
  ip link set eth0 up
  ip route add default via $net.254 2>/dev/null || true
  own_sys "$dir/n$i"
  mount -t tmpfs -o mode=1777 shm /dev/shm
  for path in "$dir" $AON_HOSTS_SHARED; do
    [[ $path == /tmp/* ]] || continue
    mkdir -p "$tmp/${path#/tmp/}"
    mount --bind "$path" "$tmp/${path#/tmp/}"
  done
  mount --rbind "$tmp" /tmp
  : >"$dir/n$i/up"
  while :; do
    sleep 3600 &
    wait $! || true
  done
}

up() { # DIR N [SHARED]...
  local dir=$1 n=$2 user=() starter
  shift 2
  [[ ! -e $dir/fabric.pid ]] || die "$dir is in use"
  ((EUID == 0)) || user=(--user --map-root-user)
  AON_HOSTS_SHARED="$*" setsid unshare "${user[@]}" --net --uts --ipc --mount --pid --fork \
    --kill-child -- "$self" __fabric "$dir" "$n" </dev/null >"$dir/fabric.log" 2>&1 &
  starter=$!
  echo $starter >"$dir/starter.pid"
  for ((i = 0; i < 5500; i++)); do
    [[ -e $dir/ready ]] && break
    kill -0 $starter 2>/dev/null || die "$(cat "$dir/fabric.log")"
    pause 0.01
  done
  [[ -e $dir/ready ]] || {
    kill $starter
    die "not ready in time"
  }
  tr -d ' ' <"/proc/$starter/task/$starter/children" >"$dir/fabric.pid"
}

in_fabric() { # DIR CMD...
  local pid user=()
  pid=$(cat "$1/fabric.pid")
  shift
  [[ /proc/$pid/ns/user -ef /proc/self/ns/user ]] ||
    user=(--user --preserve-credentials)
  exec nsenter -t "$pid" "${user[@]}" --net --uts --ipc --mount --pid --wd="$PWD" -- "$@"
}

on_host() { # DIR HOST CMD...: in the fabric
  local dir=$1 host=$2
  shift 2
  [[ $host != login ]] || exec "$@"
  [[ -r $dir/$host/pid ]] || die "no host $host"
  exec nsenter -t "$(cat "$dir/$host/pid")" --net --uts --ipc --mount --wd="$PWD" -- "$@"
}

# As a power cut: its network first, then all processes with one command, so that none of them sees
# another one die and acts upon it.
kill_host() { # DIR HOST: in the fabric
  local wanted entry pids
  exec {wanted}<"/proc/$(cat "$1/$2/pid")/ns/net"  # stays the same when its processes have gone
  ip link set "v${2#n}" down
  for ((i = 0; i < 3000; i++)); do  # what it waits for may be a disk
    pids=()
    for entry in /proc/[0-9]*; do
      [[ ! $entry/ns/net -ef /proc/self/fd/$wanted ]] || pids+=("${entry#/proc/}")
    done
    ((${#pids[@]} != 0)) || return 0
    kill -KILL "${pids[@]}" 2>/dev/null || true
    pause 0.02
  done
  die "processes of $2 do not end"
}

down() { # DIR: the death of the fabric's first process is that of all others
  kill -KILL "$(cat "$1/fabric.pid")" 2>/dev/null || true
  for ((i = 0; i < 3000; i++)); do
    kill -0 "$(cat "$1/starter.pid")" 2>/dev/null || break
    pause 0.01
  done
}

action=${1:-}
dir=${2:-}
[[ -d $dir ]] || die "usage: hosts.sh up|exec|kill|down DIR ..., with a DIR that exists"
shift 2
case $action in
  up) up "$dir" "$@" ;;
  exec) in_fabric "$dir" "$self" __on "$dir" "$@" ;;
  kill) in_fabric "$dir" "$self" __kill "$dir" "$@" ;;
  down) down "$dir" ;;
  __fabric) fabric "$dir" "$@" ;;
  __host) host "$dir" "$@" ;;
  __on) on_host "$dir" "$@" ;;
  __kill) kill_host "$dir" "$@" ;;
  *) die "unknown action $action" ;;
esac
