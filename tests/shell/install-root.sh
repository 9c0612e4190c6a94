#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The files that `make install` writes as root into /usr/local and into a user's prefix, on the whole machine: an
# overlay over / records them, so that no file of the machine changes. Skipped without root or overlays.
set -u
if [ -z "${IN_NAMESPACE-}" ]; then
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { echo "needs root and unshare -m"; exit 77; }
	IN_NAMESPACE=1 exec unshare -m --propagation private "$0" "$@"
fi
. tests/shell/check.bash
tree=$PWD
space=$(mktemp -d)
# The mounts end with the namespace.
trap 'rm -rf --one-file-system "$space" 2>/dev/null; umount -l "$space" 2>/dev/null; rmdir "$space" 2>/dev/null' EXIT
mount -t tmpfs tmpfs "$space" || { echo "tmpfs cannot be mounted"; exit 77; }
mkdir "$space/upper" "$space/work" "$space/root" "$space/out"
root=$space/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$space/upper,workdir=$space/work" "$root" 2>/dev/null ||
	{ echo "overlays cannot be mounted"; exit 77; }
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
# The tree itself is mounted without the overlay: files of a build are not files of the installation.
mkdir -p "$root$tree"
mount --bind "$tree" "$root$tree"

# A compiler cache writes statistics on each call.
export CCACHE_DISABLE=1

# inside COMMAND: runs a shell in the overlay, in this tree.
inside() { chroot "$root" /bin/bash -euc "cd '$tree'; $1"; }

# Changed files and folders, except ld.so.cache and those of the tree.
changes() {
	(cd "$space/upper" && find . -mindepth 1 ! -path ./etc/ld.so.cache ! -path './var/cache/ldconfig*' ! -path './root/.cache*') |
		sed 's|^\.||' | while read -r path; do
		[ -d "$space/upper$path" ] && [ -d "$path" ] || echo "$path"
	done | sort
}

# recorded MANIFEST: the files and folders of the manifest, and the manifest.
recorded() { { cut -f2 "$root$1"; echo "$1"; } | sort; }

user_prefix_changes_nothing_outside_of_it() {
	inside "make --no-print-directory install PREFIX=/home/somebody/tensor"
	changes >"$space/out/changes"
	grep -qx /home/somebody/tensor/lib/libtensor.so.0 "$space/out/changes"
	grep -vE '^/home/somebody(/|$)' "$space/out/changes" | is_empty
	inside "make --no-print-directory uninstall PREFIX=/home/somebody/tensor"
	changes | is_empty
}

system_prefix_changes_only_recorded_files() {
	inside "make --no-print-directory install"
	changes | diff <(recorded /usr/local/share/devtensor/manifest) -
	for f in /usr/lib/modules-load.d/tensor.conf /usr/lib/udev/rules.d/60-tensor.rules /usr/local/lib/libtensor.so.0; do
		[ -s "$root$f" ]
	done
}

# The two commands that docs/install.md gives for /usr/local.
program_runs_after_ldconfig() {
	readme_block c >"$root/tmp/first.c"
	inside 'cd /tmp; gcc first.c -o first $(pkg-config --cflags --libs tensor); ldconfig; env -i ./first' >"$space/out/first"
	readme_block text | diff - "$space/out/first"
}

tensorstat_has_its_page_and_runs() {
	inside "tensorstat version; [ -s /usr/local/share/man/man1/tensorstat.1 ]"
}

uninstall_leaves_nothing() {
	inside "make --no-print-directory uninstall; ldconfig"
	changes | is_empty
}

check_all user_prefix_changes_nothing_outside_of_it system_prefix_changes_only_recorded_files \
	program_runs_after_ldconfig tensorstat_has_its_page_and_runs uninstall_leaves_nothing
