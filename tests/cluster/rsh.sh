#!/bin/sh
# rsh.sh [options] HOST CMD...: rsh between the hosts of hosts.sh, whose folder is AON_HOSTS, for
#   Open MPI   mpirun --mca plm_rsh_agent rsh.sh --host n1:2,n2:2 ...
#   hydra      mpiexec.hydra -launcher rsh -launcher-exec rsh.sh -hosts n1,n2 ...
# As with rsh, the words are joined and given to a shell with a fresh environment.
while :; do
  case $1 in
    -l | -o | -p) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1
shift
: "${AON_HOSTS:?is the folder of hosts.sh}"
pid=1
[ "$host" = login ] || pid=$(cat "$AON_HOSTS/$host/pid") || exit 255
exec nsenter -t "$pid" --net --uts --ipc --mount -- \
  env -i HOME="$HOME" USER="${USER:-root}" SHELL=/bin/sh AON_HOSTS="$AON_HOSTS" \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  sh -c "cd '$HOME' 2>/dev/null; $*"
