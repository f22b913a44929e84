#!/bin/bash
# Packs what the tests and benches of this folder need, for a machine with a GPU that has neither
# AON nor its libraries, MPI, OTF2 or a compiler: what is built, the libraries it was linked to,
# Open MPI with the components of one node, otf2-print.
#
#   tests/gpu/carry.sh FILE.tar.gz [BUILD]     BUILD: build/release; some 20 MB
#
# There, as root for Open MPI's own places, with the source tree beside it:
#
#   tar -xzf FILE.tar.gz -C /opt && . /opt/carried/use.sh && python3 tests/gpu/all.py
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "$1")
build=${2:-build/release}
libraries=/usr/lib/x86_64-linux-gnu
components=$libraries/openmpi/lib/openmpi3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
carried=$work/carried

# Of the C and C++ libraries the machine has its own, which must not be older.
own='/(lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s)|ld-linux[^/]*)\.so'
needed() { ldd "$@" 2> /dev/null | awk '/=> \//{print $3}' | sort -u | grep -vE "$own" || true; }

mkdir -p "$carried"/{bin,lib/aon/private,mpi} "$carried/mpi$components" "$carried/mpi/usr/bin"
for name in aon aon-agent aon-canary aon-canary-program aon-node aon-run aon-task gpu_busy \
  gpu_launches heat2d; do
  cp "$build/bin/$name" "$carried/bin/"
done
cp -a "$build"/lib/libaon*.so "$build/lib/libnccl-profiler-aon.so" \
  "$build"/lib/fake_{cuda,nccl} "$carried/lib/"
cp -a "$build"/lib/aon/{aon-gpu-counters,providers,python} "$carried/lib/aon/"
cp -a "$build/share" "$carried/"
cp "$(command -v otf2-print)" "$carried/bin/otf2-print.real"
cat > "$carried/bin/otf2-print" << 'END'
#!/bin/sh
here=$(dirname "$(realpath "$0")")
LD_LIBRARY_PATH=$here/../lib/aon/private exec "$here/otf2-print.real" "$@"
END
chmod +x "$carried/bin/otf2-print"
find "$carried" -type f \( -name '*.so*' -o -perm -u+x \) -exec strip --strip-unneeded {} + \
  2> /dev/null || true

# Of Open MPI no networks and no batch systems.
for file in "$components"/*.so; do
  case $(basename "$file") in
    *ofi* | *ucx* | *psm* | *usnic* | *openib* | *portals* | *cuda* | *ucc* | *hcoll* | *slurm* | \
      *_tm* | *gridengine*) ;;
    *) cp -L "$file" "$carried/mpi$components/" ;;
  esac
done
cp -L /usr/bin/orterun "$carried/mpi/usr/bin/mpirun"
cp -L /usr/bin/orted "$carried/mpi/usr/bin/"
for folder in /etc/openmpi /usr/share/openmpi; do
  mkdir -p "$carried/mpi$folder"
  cp -L "$folder"/*.{conf,txt} "$carried/mpi$folder/" 2> /dev/null || true
done
[[ ! -d $libraries/pmix2 ]] || cp -aL "$libraries/pmix2" "$carried/mpi$libraries/"

for file in $(needed "$carried"/bin/aon* "$carried"/lib/*.so "$carried"/lib/aon/aon-gpu-counters \
  "$carried"/lib/aon/providers/*.so | grep -v "^$work\|^$PWD"); do
  cp -L "$file" "$carried/lib/aon/private/"
done
mkdir "$carried/mpi/libraries"
for file in $(needed "$carried"/mpi/usr/bin/* "$carried/mpi$components"/*.so \
  $(find "$carried/mpi$libraries/pmix2" -name '*.so*' 2> /dev/null)); do
  cp -L "$file" "$carried/mpi/libraries/"
done

cat > "$carried/use.sh" << 'END'
# To be sourced: puts Open MPI where it was built for, unless the machine has one, and sets what the
# scripts of tests/gpu want. Libraries that the machine has are its own.
carried=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
if ! command -v mpirun > /dev/null; then
  cp -rn "$carried/mpi/usr" "$carried/mpi/etc" / 2> /dev/null
  ldconfig -p | awk '{print $1}' | sort -u > "$carried/have"
  mkdir -p "$carried/mpi/used"
  for file in "$carried"/mpi/libraries/*; do
    grep -qxF "$(basename "$file")" "$carried/have" || cp "$file" "$carried/mpi/used/"
  done
  echo "$carried/mpi/used" > /etc/ld.so.conf.d/zz-carried.conf
  ldconfig
fi
export AON_BUILD=$carried PATH=$carried/bin:$PATH OMPI_MCA_plm_rsh_agent=/bin/true
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
END
tar -C "$work" -czf "$target" carried
ls -sh "$target"
