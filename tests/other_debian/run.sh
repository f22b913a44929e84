#!/bin/bash
# Runs the programs and tests of tests/e2e/mpi, and tests/e2e/nccl/real_test.py, with the MPI
# libraries and the NCCL of another Debian, in a folder of its own: what is built here runs there,
# programs are compiled there. As root; needs debootstrap, a built release and 5 GB.
#
#   tests/other_debian/run.sh SUITE FOLDER [LIBRARY ...]
#
#   SUITE     trixie, sid, ...; what FOLDER holds already is used again
#   LIBRARY   openmpi, mpich: each by its own ABI; abi_openmpi, abi_mpich: by that of MPI 5, where
#             the library has it; nccl. Default: all
#
# Prints a line per test; what each said lies in FOLDER/tmp/LIBRARY-TEST.log. Some fail there for
# what the library does without AON as well (MPI_Comm_spawn without a network, say): look first.
set -euo pipefail
suite=${1:?SUITE} root=$(realpath -m "${2:?FOLDER}")
shift 2
libraries=("${@:-openmpi mpich abi_openmpi abi_mpich nccl}")
source=$(realpath "$(dirname "$0")/../..")
built=$source/build/release

packages='build-essential libopenmpi-dev openmpi-bin libmpich-dev mpich python3 python3-numpy
python3-mpi4py python3-otf2 python3-six python3-h5py python3-xarray python3-h5netcdf
python3-netcdf4 otf2-tools procps'

install() { # package...
  chroot "$root" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o Acquire::Check-Valid-Until=false install -y --no-install-recommends "$@"
}

make_root() {
  [[ -e $root/etc/debian_version ]] || debootstrap --variant=minbase "$suite" "$root"
  sed -i 's/ main$/ main contrib/' "$root/etc/apt/sources.list"
  for folder in proc sys dev; do
    mkdir -p "$root/$folder"
    mountpoint -q "$root/$folder" || mount --rbind "/$folder" "$root/$folder"
    mount --make-rslave "$root/$folder"
  done
  chroot "$root" apt-get -qq -o Acquire::Check-Valid-Until=false update
  # shellcheck disable=SC2086
  install $packages
  install libnccl2 || echo "no libnccl2 in $suite"
}

# The build, and libraries that it needs and that are not there by that name.
carry() {
  local to=$root/aon
  mkdir -p "$to/build/release"
  cp -a "$source"/{core,examples,plugins,tests} "$to"
  cp -a "$built"/{bin,lib,share} "$to/build/release"
  for file in "$built"/bin/aon* "$built"/lib/*.so "$built"/lib/aon/*/*.so; do
    ldd "$file" 2> /dev/null || true
  done | awk '$2 == "=>" && $3 ~ "^/" {print $1, $3}' | sort -u | while read -r name path; do
    [[ -e $root/usr/lib/x86_64-linux-gnu/$name || $path == "$built"/* ]] ||
      cp -L "$path" "$root/usr/local/lib/$name"
  done
  chroot "$root" ldconfig
}

trap 'umount -R "$root"/{proc,sys,dev} 2> /dev/null || true' EXIT
make_root
carry
for library in ${libraries[*]}; do
  chroot "$root" bash /aon/tests/other_debian/inside.sh "$library"
done
