#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# `make install` with a user's prefix and into a staging folder: which files it writes, that programs
# compile, link and execute with them, and that `make uninstall` leaves nothing. tests/shell/install-root.sh
# does the same with /usr/local. A prefix with a space is used wherever the tools allow one.
set -u
. tests/shell/check.bash
build=$(readlink -f "$1")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
prefix=$tmp/prefix
spaced="$tmp/with space"
staged=$tmp/staged

# `installed` is the difference of the listings before and after the install.
prepare() {
	set -e
	mkdir -p "$spaced/lib" "$prefix/include" "$prefix/kept"
	listing "$tmp" >"$build/results/install.before"
	make --no-print-directory install PREFIX="$prefix" >"$build/results/install.out"
	make --no-print-directory install PREFIX="$spaced"
	make --no-print-directory install PREFIX=/usr DESTDIR="$staged"
	mkdir "$tmp/work"
	readme_block c >"$tmp/work/first.c"
	readme_block text >"$tmp/work/first.out"
	grep -q 'int main' "$tmp/work/first.c"
}

user_prefix_gets_no_system_file() {
	find "$prefix" "$spaced" | grep -E 'udev|sysusers|modules-load|modprobe|dkms|/src/' | is_empty
	grep -q 'make install-system install-dkms' "$build/results/install.out"
}

# No destination in a dry run is outside of the prefix.
user_prefix_gets_every_file() {
	while IFS=$'\t' read -r part path; do
		case $path in "$prefix"/*) ;; *) echo "outside of PREFIX: $part $path"; exit 1 ;; esac
		[ -e "$path" ]
	done <"$prefix/share/devtensor/manifest"
	find "$prefix" ! -type d ! -path "$prefix/share/devtensor/manifest" -printf '%p\n' |
		grep -vxFf <(cut -f2 "$prefix/share/devtensor/manifest") | is_empty
}

install_prints_one_line_for_a_folder() {
	grep -qx "  INSTALL $prefix/lib/pkgconfig (1 file)" "$build/results/install.out"
	[ "$(grep -c '^  INSTALL ' "$build/results/install.out")" -lt 20 ]
	fails grep -F "$prefix/lib/libtensor.so" "$build/results/install.out"
}

v1_prints_every_file() {
	make --no-print-directory V=1 install-dev PREFIX="$tmp/verbose" >"$tmp/work/said"
	make --no-print-directory V=1 uninstall PREFIX="$tmp/verbose" >>"$tmp/work/said"
	[ "$(grep -cx " *$tmp/verbose/include/tensor/tensor.h" "$tmp/work/said")" = 2 ]
}

relative_prefix_is_refused() {
	fails make --no-print-directory install-dev PREFIX=relative 2>"$tmp/work/said"
	grep 'PREFIX must be an absolute path' "$tmp/work/said"
	[ ! -e relative ]
}

staging_gets_the_system_files() {
	cd "$staged/usr"
	for f in bin/tensorstat include/tensor/ops.h include/tensor/ops.hpp include/tensor/tensor.hpp include/linux/tensor.h \
		share/man/man1/tensorstat.1 \
		share/man/man3/tensor_buffer.3 share/man/man4/tensor.4 lib/udev/rules.d/60-tensor.rules \
		lib/modules-load.d/tensor.conf lib/sysusers.d/tensor.conf lib/modprobe.d/tensor.conf; do
		[ -s $f ] || { echo "$f"; exit 1; }
	done
}

# Kbuild, every source, and every header of this tree that they include.
dkms_source_is_complete() {
	local src=$staged/usr/src/tensor-$version f c h
	grep '^PACKAGE_VERSION="'"$version"'"$' "$src/dkms.conf"
	for f in Kbuild kmod/*.[ch] kmod/*/*.[ch]; do
		case $f in */test_*) [ ! -e "$src/$f" ] && continue ;; esac
		cmp "$f" "$src/$f"
	done
	for c in "$src"/kmod/*.[ch] "$src"/kmod/*/*.[ch]; do
		for h in $(sed -n 's/^#include "\(.*\)"$/\1/p' "$c"); do
			[ -s "${c%/*}/$h" ] || [ -s "$src/kmod/$h" ] || [ -s "$src/$h" ] || { echo "$c: $h"; exit 1; }
		done
	done
}

library_exports_tensor_names_only() {
	local lib=$prefix/lib/libtensor.so.0
	readelf -d "$lib" | grep 'SONAME.*\[libtensor.so.0\]'
	nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 != "A" { print $3 }' |
		grep -v '@@LIBTENSOR_PRIVATE_0\.1$' | sort -u >"$tmp/work/symbols"
	[ -s "$tmp/work/symbols" ]
	grep -v '^tensor_' "$tmp/work/symbols" | is_empty
}

completions_of_all_shells_are_installed() {
	local f name
	for f in $(find tools -name '*.bash' -o -name '*.zsh' -o -name '_tensorstat' -o -name '*.fish'); do
		name=$(basename "$f")
		case $f in
		*.bash) cmp "$f" "$prefix/share/bash-completion/completions/${name%.bash}" ;;
		*.fish) cmp "$f" "$prefix/share/fish/vendor_completions.d/$name" ;;
		*) cmp "$f" "$prefix/share/zsh/site-functions/_tensorstat" ;;
		esac
	done
}

# The commands of the second `sh` block of README.md, with this prefix.
readme_line_compiles_and_the_program_runs() {
	local line
	line=$(grep '^gcc first\.c' README.md)
	echo "$line"
	cd "$tmp/work"
	env PKG_CONFIG_PATH="$prefix/lib/pkgconfig" bash -euc "$line"
	env -u LD_LIBRARY_PATH ./first | diff first.out -
}

pkg_config_static_links_and_runs() {
	export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
	[ "$(pkg-config --modversion tensor)" = "$version" ]
	cd "$tmp/work"
	# shellcheck disable=SC2046
	gcc first.c -o first-static $(pkg-config --static --cflags --libs tensor) -Wl,-rpath,"$prefix/lib"
	./first-static | diff first.out -
}

# The flags follow the folder when the tree is moved.
pkg_config_is_relocatable() {
	cp -a "$prefix" "$tmp/work/moved"
	local flags
	flags=$(PKG_CONFIG_PATH=$tmp/work/moved/lib/pkgconfig pkg-config --cflags --libs tensor)
	echo "$flags"
	fails grep -F "$prefix" <<<"$flags"
	cd "$tmp/work"
	# shellcheck disable=SC2086
	gcc first.c -o first-moved $flags -Wl,-rpath,"$tmp/work/moved/lib"
	./first-moved | diff first.out -
}

pkg_config_of_a_system_prefix_has_no_path() {
	local flags
	flags=$(PKG_CONFIG_PATH=$staged/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$staged pkg-config --cflags --libs tensor)
	[ "$(echo $flags)" = "-I$staged/usr/include -L$staged/usr/lib -ltensor" ]
	# Without a sysroot these are the default folders of the compiler.
	[ "$(echo $(PKG_CONFIG_PATH=$staged/usr/lib/pkgconfig pkg-config --cflags --libs tensor | sed 's|-L/usr/lib ||'))" = -ltensor ]
}

# cmake_program PREFIX FOLDER: configures, builds and runs a project of two lines.
cmake_program() {
	command -v cmake >/dev/null || { echo "cmake is not installed"; exit 77; }
	mkdir "$2"
	cp "$tmp/work/first.c" "$2"
	cat >"$2/CMakeLists.txt" <<-'CMAKE'
		cmake_minimum_required(VERSION 3.13)
		project(first C)
		find_package(tensor 0.1 REQUIRED)
		add_executable(first first.c)
		target_link_libraries(first tensor::tensor)
	CMAKE
	cmake -S "$2" -B "$2/out" -DCMAKE_PREFIX_PATH="$1"
	cmake --build "$2/out"
	"$2/out/first" | diff "$tmp/work/first.out" -
}

cmake_package_links_and_runs() { cmake_program "$spaced" "$tmp/work/cmake project"; }
cmake_package_is_relocatable() {
	cp -a "$prefix" "$tmp/work/elsewhere"
	cmake_program "$tmp/work/elsewhere" "$tmp/work/cmake2"
	fails grep -rlF "$prefix" "$tmp/work/elsewhere/lib/cmake" "$tmp/work/elsewhere/lib/pkgconfig"
}

cmake_refuses_a_newer_version() {
	command -v cmake >/dev/null || { echo "cmake is not installed"; exit 77; }
	mkdir "$tmp/work/newer"
	printf 'cmake_minimum_required(VERSION 3.13)\nproject(first C)\nfind_package(tensor 99 REQUIRED)\n' >"$tmp/work/newer/CMakeLists.txt"
	fails cmake -S "$tmp/work/newer" -B "$tmp/work/newer/out" -DCMAKE_PREFIX_PATH="$prefix"
}

cuda_plugin_is_built_on_request_only() {
	# In an empty build folder: the plugin may be up to date in build/.
	make -n all B=build/empty | grep -e nvcc -e lib/kernels/cuda/ | is_empty
	make -n all B=build/empty CUDA=1 NVCC=/opt/toolkit/bin/nvcc 2>&1 | grep '/opt/toolkit/bin/nvcc '
	fails make -n all CUDA=1 NVCC= 2>"$tmp/work/said"
	grep 'CUDA=1 needs nvcc' "$tmp/work/said"
}

# The text would end a quotation of the shell, and the prefix would be lost.
quotation_mark_in_the_prefix_is_refused() {
	fails make --no-print-directory install PREFIX="$tmp/q'uote" DESTDIR="$tmp/quote" 2>"$tmp/work/said"
	grep 'quotation mark' "$tmp/work/said"
	[ ! -e "$tmp/quote" ]
}

# interrupted PREFIX SIGNAL N: an install whose N-th file is written in part, and which ends there: by this signal,
# or with SIGNAL=FAIL by an error of the copy.
interrupted() {
	mkdir -p "$tmp/work/bin"
	cat >"$tmp/work/bin/install" <<-'SHIM'
		#!/bin/bash
		echo >>"$CALLS"
		[ "$(wc -l <"$CALLS")" -ge "$AT" ] || exec /usr/bin/install "$@"
		: >"${!#}"
		[ "$HOW" = FAIL ] || kill "-$HOW" $PPID
		exit 1
	SHIM
	chmod 755 "$tmp/work/bin/install"
	rm -f "$tmp/work/calls"
	fails env PATH="$tmp/work/bin:$PATH" CALLS="$tmp/work/calls" HOW="$2" AT="$3" \
		make --no-print-directory install-dev install-tools PREFIX="$1"
}

# The last file is there in part, as a full disk leaves it.
uninstall_removes_a_failed_install() {
	local how at
	while read -r how at; do
		interrupted "$tmp/broken" "$how" "$at"
		[ "$(find "$tmp/broken" -type f | wc -l)" -gt "$at" ] || { echo "$how $at: too few files"; exit 1; }
		make --no-print-directory uninstall PREFIX="$tmp/broken"
		[ ! -e "$tmp/broken" ] || { find "$tmp/broken"; exit 1; }
	done <<-ENDS
		FAIL 1
		FAIL 30
		TERM 3
		INT 4
		KILL 9
	ENDS
}

failed_install_can_be_repeated() {
	interrupted "$tmp/again" FAIL 9
	# A line that a full disk cut.
	printf 'dev\t%s' "$tmp/again/inc" >>"$tmp/again/share/devtensor/manifest"
	make --no-print-directory install-dev install-tools PREFIX="$tmp/again"
	[ -z "$(sort "$tmp/again/share/devtensor/manifest" | uniq -d)" ]
	fails grep "$tmp/again/inc\$" "$tmp/again/share/devtensor/manifest"
	make --no-print-directory uninstall PREFIX="$tmp/again"
	[ ! -e "$tmp/again" ]
}

# A file has the name of a folder.
folder_that_cannot_be_made_ends_the_install() {
	mkdir "$tmp/blocked"
	touch "$tmp/blocked/include"
	fails make --no-print-directory install-dev PREFIX="$tmp/blocked" 2>"$tmp/work/said"
	grep 'make uninstall' "$tmp/work/said"
	make --no-print-directory uninstall PREFIX="$tmp/blocked"
	[ "$(find "$tmp/blocked" -mindepth 1)" = "$tmp/blocked/include" ]
	rm "$tmp/blocked/include"
	touch "$tmp/blocked/share"
	fails make --no-print-directory install-dev PREFIX="$tmp/blocked"
	[ "$(find "$tmp/blocked" -mindepth 1)" = "$tmp/blocked/share" ]
	rm -r "$tmp/blocked"
}

# Every spelling of a folder is one folder.
spellings_of_a_prefix_are_one() {
	local spelling
	for spelling in "$tmp/odd/" "$tmp//odd" "$tmp/./odd/." "$tmp/odd//./"; do
		make --no-print-directory install-dev install-tools PREFIX="$spelling"
		grep -F -e // -e /./ "$tmp/odd/share/devtensor/manifest" | is_empty
		[ -e "$tmp/odd/bin/tensorstat" ]
		make --no-print-directory uninstall PREFIX="$tmp/odd"
		[ ! -e "$tmp/odd" ]
	done
	make --no-print-directory -n install-dev PREFIX=/usr/.//local >/dev/null
}

# refused WORD VARIABLE=VALUE...
refused() {
	local word=$1
	shift
	fails make --no-print-directory install-tools "$@" 2>"$tmp/work/said"
	grep -e "$word" "$tmp/work/said"
	[ ! -e "$tmp/bad" ] && [ ! -e "$tmp/stage" ]
}

folders_with_special_characters_work_or_are_refused() {
	local c odd="$tmp/o&d|d"
	for c in '"' '\' ';' ':' '`' $'\t' $'\n'; do
		refused contains PREFIX="$tmp/bad/x${c}y"
		refused contains PREFIX="$tmp/bad" LIBDIR="$tmp/bad/x${c}y"
	done
	refused 'contains \.\.' PREFIX="$tmp/bad/../worse"
	refused 'contains \.\.' PREFIX="$tmp/bad" MANDIR="$tmp/bad/.."
	refused 'absolute' PREFIX="$tmp/bad" LIBDIR=lib
	make --no-print-directory install-lib install-dev PREFIX="$tmp/odd" LIBDIR="$odd/lib"
	cd "$tmp/work"
	PKG_CONFIG_PATH=$odd/lib/pkgconfig pkg-config --cflags --libs tensor
	eval "gcc first.c -o first-odd $(PKG_CONFIG_PATH=$odd/lib/pkgconfig pkg-config --cflags --libs tensor)"
	LD_LIBRARY_PATH=$odd/lib ./first-odd | diff first.out -
	# make itself takes no such name for a library that CMake links.
	grep -F "\"$odd/lib\"" "$odd/lib/cmake/tensor/tensorConfig.cmake"
	cd - >/dev/null
	make --no-print-directory uninstall PREFIX="$tmp/odd" LIBDIR="$odd/lib"
	[ ! -e "$tmp/odd" ] && [ ! -e "$odd" ]
}

uninstall_keeps_foreign_files() {
	local foreign=$tmp/foreign
	make --no-print-directory install-dev install-tools PREFIX="$foreign"
	echo note >"$foreign/include/tensor/note"
	make --no-print-directory uninstall-dev PREFIX="$foreign"
	[ -e "$foreign/bin/tensorstat" ]
	make --no-print-directory uninstall PREFIX="$foreign"
	[ "$(find "$foreign" -type f)" = "$foreign/include/tensor/note" ]
	[ ! -e "$foreign/bin" ] && [ ! -e "$foreign/lib" ] && [ ! -e "$foreign/share" ]
	rm -r "$foreign"
}

# A prefix without an installation, for example because of a typing error.
uninstall_without_a_record_removes_nothing() {
	mkdir -p "$tmp/work/other/include/tensor"
	cp include/tensor/tensor.h "$tmp/work/other/include/tensor"
	make --no-print-directory uninstall PREFIX="$tmp/work/other" | grep 'nothing to uninstall'
	cmp include/tensor/tensor.h "$tmp/work/other/include/tensor/tensor.h"
}

# files_of FOLDER ACTION [PART...]: packaging/install-files alone, with three files and a link.
files_of() {
	local DESTDIR='' PREFIX=$1 LIBDIR=${libdir-$1/lib} DATADIR=$1/share name
	shift
	for name in PREFIX LIBDIR DATADIR; do export "${name?}"; done
	export DESTDIR BINDIR=$PREFIX/bin INCLUDEDIR=$PREFIX/include MANDIR=$DATADIR/man PKGCONFIGDIR=$LIBDIR/pkgconfig \
		CMAKEDIR=$LIBDIR/cmake GDBDIR=$DATADIR/gdb COMPDIR=$DATADIR/bash ZSHCOMPDIR=$DATADIR/zsh FISHCOMPDIR=$DATADIR/fish \
		SYSLIBDIR=$tmp/system DKMSDIR=$tmp/src/tensor-1 SYSTEM_PREFIX=no VERSION=1 SOVERSION=0
	printf '%s\n' 'lib 0644 Makefile LIBDIR/one' 'lib 0644 README.md LIBDIR/two' 'lib link one LIBDIR/link' \
		'dev 0644 Makefile INCLUDEDIR/tensor/three' >"$tmp/work/list"
	if [ "$1" = install ]; then packaging/install-files install "$tmp/work/list"; else packaging/install-files "$@"; fi
}

prefix_that_ends_in_a_space_is_not_another_folder() {
	mkdir -p "$tmp/end/a"
	files_of "$tmp/end/a " install
	files_of "$tmp/end/a " uninstall lib dev
	[ -d "$tmp/end/a" ] && [ ! -e "$tmp/end/a " ]
	rm -r "$tmp/end"
}

empty_prefix_is_refused() {
	fails make --no-print-directory -n install-dev PREFIX= DESTDIR="$tmp/bad" 2>"$tmp/work/said"
	grep 'PREFIX is empty' "$tmp/work/said"
	fails make --no-print-directory uninstall PREFIX= DESTDIR="$tmp/bad" 2>/dev/null
}

uninstall_removes_nothing_outside_of_its_folders() {
	local own=$tmp/own path
	mkdir -p "$tmp/victims/empty" "$tmp/system/udev" "$tmp/src/tensor-0/kmod"
	touch "$tmp/victims/file" "$tmp/system/udev/mine.rules" "$tmp/system/udev/60-tensor.rules" "$tmp/src/tensor-0/kmod/a.c"
	files_of "$own" install
	for path in "$tmp/victims/file" "$own/../victims/file" "$own/lib/../../victims/file" "$own/./../victims/file" \
		"$tmp/system/udev/60-tensor.rules" "$tmp/src/tensor-0/kmod/a.c"; do
		printf 'lib\t%s\n' "$path"
	done >>"$own/share/devtensor/manifest"
	printf 'system\t%s\n' "$tmp/system/udev/mine.rules" "$tmp/system/udev/60-tensor.rules" >>"$own/share/devtensor/manifest"
	printf 'dkms\t%s\ndir\t%s\n' "$tmp/src/tensor-0/kmod/a.c" "$tmp/victims/empty" >>"$own/share/devtensor/manifest"
	fails files_of "$own" uninstall lib dev system dkms 2>"$tmp/work/said"
	[ "$(grep -c 'not in the folders of this call' "$tmp/work/said")" = 8 ] || { cat "$tmp/work/said"; exit 1; }
	[ -e "$tmp/victims/file" ] && [ -d "$tmp/victims/empty" ] && [ -e "$tmp/system/udev/mine.rules" ]
	[ ! -e "$tmp/system/udev/60-tensor.rules" ] && [ ! -e "$tmp/src/tensor-0/kmod/a.c" ]
	[ "$(find "$own" -type f)" = "$own/share/devtensor/manifest" ]
	rm -r "$own" "$tmp/victims" "$tmp/system" "$tmp/src"
}

# With the variables of the installation a second call removes them.
files_of_another_libdir_stay_in_the_record() {
	libdir="$tmp/far/lib" files_of "$tmp/near" install
	fails files_of "$tmp/near" uninstall lib dev 2>"$tmp/work/said"
	[ -e "$tmp/far/lib/one" ]
	libdir="$tmp/far/lib" files_of "$tmp/near" uninstall lib dev
	[ ! -e "$tmp/far" ] && [ ! -e "$tmp/near" ]
}

file_that_was_there_before_is_left() {
	local own=$tmp/had
	mkdir -p "$own/lib" "$own/target"
	echo mine >"$own/lib/one"
	echo mine >"$own/target/kept"
	ln -s "$own/target" "$own/lib/two"
	files_of "$own" install
	files_of "$own" install
	cmp Makefile "$own/lib/one"
	[ ! -L "$own/lib/two" ] && cmp README.md "$own/lib/two"
	files_of "$own" uninstall lib dev >"$tmp/work/said"
	[ "$(grep -c 'a file was there before' "$tmp/work/said")" = 2 ]
	[ "$(cd "$own" && find . -type f | sort | xargs)" = "./lib/one ./lib/two ./target/kept" ]
	rm -r "$own"
}

# A path of a file that is a folder: nothing is written, not even into the folder.
folder_in_the_place_of_a_file_is_refused() {
	local name
	for name in one link; do
		mkdir -p "$tmp/place/lib/$name"
		fails files_of "$tmp/place" install 2>"$tmp/work/said"
		grep "a folder has the name of a file: $tmp/place/lib/$name" "$tmp/work/said"
		[ "$(find "$tmp/place" -mindepth 1 | sort | xargs)" = "$tmp/place/lib $tmp/place/lib/$name" ]
		rm -r "$tmp/place"
	done
}

folder_that_became_a_link_is_not_followed() {
	local own=$tmp/turned
	files_of "$own" install
	rm -r "$own/lib"
	mkdir "$tmp/foreign"
	echo mine >"$tmp/foreign/one"
	ln -s "$tmp/foreign" "$own/lib"
	fails files_of "$own" uninstall lib dev 2>"$tmp/work/said"
	grep "$own/lib became a symbolic link" "$tmp/work/said"
	[ -e "$tmp/foreign/one" ] && [ -e "$own/share/devtensor/manifest" ] && [ ! -e "$own/include" ]
	# After the repair the record still has the files.
	rm "$own/lib"
	mkdir "$own/lib"
	files_of "$own" uninstall lib dev
	[ ! -e "$own" ]
	# A link at the time of the installation is followed.
	mkdir "$own"
	ln -s "$tmp/foreign" "$own/lib"
	files_of "$own" install
	files_of "$own" uninstall lib dev >/dev/null
	[ "$(ls "$tmp/foreign")" = one ] && [ -L "$own/lib" ]
	rm -r "$own" "$tmp/foreign"
}

# The shim stands for a mounted folder, and for one without permission.
folder_that_cannot_be_removed_stays_in_the_record() {
	local own=$tmp/stuck name
	for name in include share; do
		files_of "$own" install
		mkdir -p "$tmp/work/stuck"
		printf '#!/bin/bash\ncase "$*" in *stuck/%s) exit 1 ;; esac\nexec /usr/bin/rmdir "$@"\n' "$name" >"$tmp/work/stuck/rmdir"
		chmod 755 "$tmp/work/stuck/rmdir"
		PATH="$tmp/work/stuck:$PATH" fails files_of "$own" uninstall lib dev 2>"$tmp/work/said"
		grep 'could not be removed' "$tmp/work/said"
		grep -x "dir	$own/$name" "$own/share/devtensor/manifest"
		files_of "$own" uninstall lib dev
		[ ! -e "$own" ]
	done
}

# SIGKILL before the record has its name: the shim stands for each moment of begin_record().
install_that_is_killed_before_the_record_leaves_nothing() {
	local own=$tmp/killed command at
	mkdir -p "$own" "$tmp/work/kill"
	for command in mkdir cp chmod mv; do
		for at in 1 2; do
			printf '#!/bin/bash\necho >>%q\n[ "$(wc -l <%q)" -lt %d ] || kill -KILL $PPID\nexec /usr/bin/%s "$@"\n' \
				"$tmp/work/killed" "$tmp/work/killed" $at $command >"$tmp/work/kill/$command"
			chmod 755 "$tmp/work/kill/$command"
			rm -f "$tmp/work/killed"
			PATH="$tmp/work/kill:$PATH" files_of "$own" install >/dev/null 2>&1 || true
			while fails flock -n packaging/install-files true; do sleep 0.1; done
			files_of "$own" uninstall lib dev >/dev/null
			[ -z "$(ls -A "$own")" ] || { echo "$command $at"; find "$own"; exit 1; }
			mkdir -p "$own"
		done
		rm "$tmp/work/kill/$command"
	done
	rmdir "$own"
}

record_that_cannot_be_read_gives_a_message() {
	local own=$tmp/record
	mkdir -p "$own/share/devtensor/manifest"
	fails files_of "$own" install 2>"$tmp/work/said"
	[ "$(grep -c 'the record is no file' "$tmp/work/said")" = "$(wc -l <"$tmp/work/said")" ]
	fails files_of "$own" uninstall lib 2>"$tmp/work/said"
	[ "$(grep -c 'the record is no file' "$tmp/work/said")" = "$(wc -l <"$tmp/work/said")" ]
	rm -r "$own"
	files_of "$own" install
	printf '\n\t\nlib\n\t/foo\nlib\t\n\0\0\n\xff\n' >>"$own/share/devtensor/manifest"
	files_of "$own" install 2>"$tmp/work/said"
	is_empty <"$tmp/work/said"
	printf '\n\t\nlib\n\t/foo\nlib\t\n\0\0\n\xff\n' >>"$own/share/devtensor/manifest"
	files_of "$own" uninstall lib dev 2>"$tmp/work/said"
	[ "$(grep -c 'were ignored' "$tmp/work/said")" = "$(wc -l <"$tmp/work/said")" ]
	[ ! -e "$own" ]
}

two_parts_at_once_are_one_after_the_other() {
	make --no-print-directory -j4 install-dev install-tools PREFIX="$tmp/both"
	[ -z "$(sort "$tmp/both/share/devtensor/manifest" | uniq -d)" ]
	make --no-print-directory uninstall PREFIX="$tmp/both"
	[ ! -e "$tmp/both" ]
}

uninstall_leaves_what_was_there_before() {
	make --no-print-directory uninstall PREFIX="$prefix"
	make --no-print-directory uninstall PREFIX="$spaced"
	make --no-print-directory uninstall PREFIX=/usr DESTDIR="$staged"
	rm -r "$tmp/work"
	listing "$tmp" | diff "$build/results/install.before" -
}

mkdir -p "$build/results"
(prepare) >"$build/results/install.log" 2>&1
if [ $? -ne 0 ]; then
	cat "$build/results/install.log"
	echo "Bail out! make install failed"
	exit 1
fi
check_all user_prefix_gets_no_system_file user_prefix_gets_every_file install_prints_one_line_for_a_folder \
	v1_prints_every_file relative_prefix_is_refused staging_gets_the_system_files dkms_source_is_complete \
	library_exports_tensor_names_only completions_of_all_shells_are_installed \
	readme_line_compiles_and_the_program_runs pkg_config_static_links_and_runs pkg_config_is_relocatable \
	pkg_config_of_a_system_prefix_has_no_path cmake_package_links_and_runs cmake_package_is_relocatable \
	cmake_refuses_a_newer_version cuda_plugin_is_built_on_request_only \
	quotation_mark_in_the_prefix_is_refused uninstall_removes_a_failed_install \
	failed_install_can_be_repeated folder_that_cannot_be_made_ends_the_install spellings_of_a_prefix_are_one \
	folders_with_special_characters_work_or_are_refused uninstall_keeps_foreign_files \
	files_of_another_libdir_stay_in_the_record prefix_that_ends_in_a_space_is_not_another_folder empty_prefix_is_refused \
	uninstall_removes_nothing_outside_of_its_folders file_that_was_there_before_is_left \
	folder_in_the_place_of_a_file_is_refused folder_that_became_a_link_is_not_followed \
	folder_that_cannot_be_removed_stays_in_the_record install_that_is_killed_before_the_record_leaves_nothing \
	record_that_cannot_be_read_gives_a_message two_parts_at_once_are_one_after_the_other \
	uninstall_without_a_record_removes_nothing uninstall_leaves_what_was_there_before
