#!/bin/bash
# The part of run.sh that runs within the other Debian: inside.sh LIBRARY
set -uo pipefail
library=${1:?LIBRARY} kind=${1#abi_}
tests=/aon/tests/e2e/mpi
programs=/aon/build/release/tests/e2e/mpi/$library
lib=/usr/lib/x86_64-linux-gnu
export AON_BUILD=/aon/build/release AON_SOURCE=/aon AON_TEST_MPI=$kind UCX_LOG_LEVEL=error
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

one() { # name script argument...
  local log=/tmp/$library-$1.log name=$1
  shift
  timeout 600 python3 -B "$@" > "$log" 2>&1
  echo "$library $name: exit $?, $(tail -1 "$log")"
}

# Prints the words of a compiler for the library; false: it is not there.
compiler() {
  case $library in
    openmpi | mpich) command -v "mpicc.$library" ;;
    abi_openmpi)
      [[ -e $lib/openmpi/include/standard_abi/mpi.h ]] &&
        echo "gcc -I$lib/openmpi/include/standard_abi -L$lib/openmpi/lib"
      ;;
    abi_mpich)
      mkdir -p /opt/abi_mpich
      ln -sf "$(ls $lib/libmpi_abi_mpich.so.* 2> /dev/null | head -1)" \
        /opt/abi_mpich/libmpi_abi.so.1
      [[ -e $lib/mpi_abi_mpich/include/mpi.h ]] &&
        echo "gcc -I$lib/mpi_abi_mpich/include -L$lib/mpi_abi_mpich/lib -Wl,-rpath,/opt/abi_mpich"
      ;;
  esac
}

if [[ $library == nccl ]]; then
  one real /aon/tests/e2e/nccl/real_test.py
  exit
fi
words=$(compiler) || { echo "$library: not in this Debian"; exit; }
printf '#!/bin/sh\nexec %s "$@" %s\n' "$words" "$([[ $library == abi_* ]] && echo -lmpi_abi)" \
  > "/usr/local/bin/mpicc-$library"
chmod +x "/usr/local/bin/mpicc-$library"
mkdir -p "$programs"
cd /aon || exit
for source in "$tests"/programs/*.c; do
  name=$(basename "$source" .c)
  case $name in *_library | standard_abi | unknown | fortran_* | private) continue ;; esac
  "mpicc-$library" -w -O1 -g -pthread -I. "$source" -o "$programs/$name" -lm ||
    echo "$library: $name is not to be compiled"
done
python3 -B "$tests/make_counter.py" "mpicc-$library" "/tmp/$library.c"
# Lazily: headers name functions that the library does not have.
"mpicc-$library" -w -O2 -shared -fPIC "/tmp/$library.c" -o "$programs/libpmpi_count.so" -Wl,-z,lazy
"mpicc-$library" -w -O1 -shared -fPIC -I. "$tests/programs/private.c" -o "$programs/libprivate.so"
[[ $library == abi_* ]] || one table /aon/tests/unit/mpi/table_test.py
for test in mpi identities collectives files interrupted one_sided intercommunicators persistent \
  topologies refused threads waits; do
  one $test "$tests/${test}_test.py" "$programs"
done
