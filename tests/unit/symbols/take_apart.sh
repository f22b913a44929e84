#!/bin/sh
# Makes of c_pie: c_stripped, its debug file c_pie.debug (also under its build-id in debug/), and
# c_packed with .gnu_debugdata; of c_without_id: c_linked, found by .gnu_debuglink and checksum.
set -e
cd "$MADE"
"$STRIP" -o c_stripped c_pie
"$OBJCOPY" --only-keep-debug c_pie c_pie.debug
id=$(readelf -nW c_pie | sed -n 's/.*Build ID: //p')
folder=debug/.build-id/$(echo "$id" | cut -c1-2)
rest=$(echo "$id" | cut -c3-)
mkdir -p "$folder" server/buildid/"$id" copies/.build-id/"$(echo "$id" | cut -c1-2)" linked/.debug
cp c_pie.debug "$folder/$rest.debug"
cp c_pie.debug server/buildid/"$id"/debuginfo
cp c_pie copies/.build-id/"$(echo "$id" | cut -c1-2)/$rest"

"$OBJCOPY" --only-keep-debug c_without_id linked/.debug/c_linked.debug
"$STRIP" -o linked/c_linked c_without_id
"$OBJCOPY" --add-gnu-debuglink=linked/.debug/c_linked.debug linked/c_linked
cp linked/c_linked c_linked

cp c_stripped c_packed
"$STRIP" --strip-debug -o c_names c_pie
if command -v xz >/dev/null; then
  xz -9 -k -f -c c_names >c_names.xz
  "$OBJCOPY" --add-section .gnu_debugdata=c_names.xz c_packed
fi
