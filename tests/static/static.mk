# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make check-kmod      what tools find in the module and its headers: checkpatch, kernel-doc, sparse,
#                        smatch, W=1, the kernel's semantic patches, the layout of the ABI
#   make test-abi        the layout of the ABI alone, for 64-bit and for 32-bit programs: seconds
#   make test-layers     a file of the module uses only what lower files define: seconds
#   make accept-abi      record what was added to the ABI
#   make format          clang-format over all sources
#   make check-format    fails on a source that `make format` would change: seconds
.PHONY: check-kmod test-abi test-layers accept-abi format check-format
check-kmod:
	@packaging/install-deps guest kmod check
	@tests/vm/tally check-kmod tests/static/check-kmod

test-abi:
	@packaging/install-deps test
	@tests/vm/tally abi tests/static/uapi-layout

test-layers:
	@tests/vm/tally layers tests/static/check-layers

accept-abi:
	tests/static/uapi-layout --accept

format:
	@packaging/install-deps format
	@tests/static/format

check-format:
	@packaging/install-deps format
	@tests/vm/tally format tests/static/format --check
