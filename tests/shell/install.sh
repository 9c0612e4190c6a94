#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# An installed tree serves a program that knows only pkg-config: the one in README.md. The shared
# library's interface is tensor_* and nothing else; what its plugin needs has a node of its own.
# DKMS finds all that kbuild needs, and `make uninstall` leaves nothing.
set -eu
build=$(readlink -f "$1")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

make --no-print-directory install DESTDIR="$tmp/root" PREFIX=/usr
export PKG_CONFIG_PATH=$tmp/root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tmp/root
[ "$(pkg-config --modversion tensor)" = "$(sed -n 's/^VERSION *:= *//p' Makefile)" ]

# The first C block of README.md, as a reader would type it.
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$tmp/first.c"
grep -q 'int main' "$tmp/first.c"
gcc -std=gnu11 -Wall -Wextra -Werror "$tmp/first.c" -o "$tmp/first" $(pkg-config --cflags --libs tensor)
LD_LIBRARY_PATH=$tmp/root/usr/lib "$tmp/first" | tee "$tmp/out"
# And prints what README.md says it prints.
awk '/^```text$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md | diff - "$tmp/out"

lib=$tmp/root/usr/lib/libtensor.so.0
readelf -d "$lib" | grep -q 'SONAME.*\[libtensor.so.0\]'
nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 != "A" { print $3 }' |
	grep -v '@@LIBTENSOR_PRIVATE_0\.1$' | sort -u >"$tmp/symbols"
test -s "$tmp/symbols"
if grep -v '^tensor_' "$tmp/symbols"; then
	echo "symbols outside tensor_*"
	exit 1
fi
for f in bin/tensorstat include/tensor/ops.h include/linux/tensor.h share/man/man1/tensorstat.1 \
	share/man/man3/tensor_buffer.3 share/man/man4/tensor.4; do
	test -s "$tmp/root/usr/$f"
done
test -s "$tmp/root/usr/lib/udev/rules.d/60-tensor.rules"
test -x "$build/bin/tensorstat"

# Kbuild, every source, and every header that those include by our own names.
src=$tmp/root/usr/src/tensor-$(sed -n 's/^VERSION *:= *//p' Makefile)
grep -q '^PACKAGE_VERSION="[0-9.]*"$' "$src/dkms.conf"
for f in Kbuild kmod/*.[ch] kmod/alloc/*.[ch]; do
	cmp "$f" "$src/$f"
done
for c in "$src"/kmod/*.[ch] "$src"/kmod/*/*.[ch]; do
	for h in $(sed -n 's/^#include "\(.*\)"$/\1/p' "$c"); do
		test -s "${c%/*}/$h" || test -s "$src/kmod/$h" || test -s "$src/$h"
	done
done

make --no-print-directory uninstall DESTDIR="$tmp/root" PREFIX=/usr
if find "$tmp/root" ! -type d | grep .; then
	echo "left behind by make uninstall"
	exit 1
fi
[ ! -e "$tmp/root/usr/include/tensor" ] && [ ! -e "$src" ]
