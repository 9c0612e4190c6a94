#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# tensor_scope and tensor_no_grad give no warning at any level of optimisation: for a variable that is assigned
# inside and read after the scope, for nested scopes, and for every way to leave one.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# The program is also C++: it has no designated initialisers.
cat >"$tmp/scopes.c" <<'END'
#include <tensor/tensor.h>

static int assigned(tensor *a)
{
	tensor *kept, *other;
	int n;

	tensor_scope {
		kept = tensor_keep(tensor_neg(a));
		n = tensor_dim(kept);
	}
	tensor_no_grad {
		other = tensor_neg(kept);
	}
	n += tensor_dim(other);
	tensor_release(kept);
	tensor_release(other);
	return n;
}

static int ways_out(tensor *a)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		tensor_scope
			tensor_scope {
				n += tensor_dim(tensor_neg(a));
				if (i == 1)
					break;
			}
	tensor_scope {
		if (n)
			goto out;
	}
out:
	tensor_scope {
		return n + tensor_dim(tensor_abs(a));
	}
	return 0;
}

int main(void)
{
	struct tensor_live_counts before, after;
	tensor_options options = { 0, 0, { 0, 0 }, 0, 0, { 0, 0 } };
	tensor *a;
	int n;

	tensor_scope {
		a = tensor_keep(tensor_arange(tensor_scalar_int(4), options));
	}
	tensor_live_counts(&before);
	n = assigned(a) + ways_out(a);
	tensor_live_counts(&after);
	tensor_release(a);
	return n != 6 || before.tensors != after.tensors;
}
END
# compiles COMPILER OPTION...: compiles with every level of optimisation and runs the program.
compiles() {
	local level language='-x c'
	[[ $1 != *++ ]] || language='-x c++'
	command -v "$1" >/dev/null || { echo "no $1"; exit 77; }
	for level in 0 1 2 3 s; do
		# shellcheck disable=SC2086
		"$@" -O$level -Wall -Wextra -Werror -Iinclude -I"$build/gen/include" $language "$tmp/scopes.c" -x none -o "$tmp/scopes" \
			-L"$build" -ltensor -Wl,-rpath,"$(realpath "$build")"
		"$tmp/scopes"
	done
}

gcc_gives_no_warning() { compiles gcc -std=gnu11; }
clang_gives_no_warning() { compiles clang -std=gnu11; }
gxx_gives_no_warning() { compiles g++; }
clangxx_gives_no_warning() { compiles clang++; }

check_all gcc_gives_no_warning clang_gives_no_warning gxx_gives_no_warning clangxx_gives_no_warning
