# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make check-kmod      what tools find in the module and its headers: checkpatch, kernel-doc, sparse,
#                        smatch, W=1, the kernel's semantic patches, the layout of the ABI
#   make accept-abi      record what was added to the ABI
.PHONY: check-kmod accept-abi
check-kmod:
	@packaging/install-deps guest kmod check
	@tests/vm/tally check-kmod tests/static/check-kmod

accept-abi:
	tests/static/uapi-layout --accept
