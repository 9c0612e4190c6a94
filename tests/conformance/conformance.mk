# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Comparison with PyTorch's operator table: make conformance [OP="add mul"] [DTYPE=f32,i64] [ARGS=-v].
# The reports are in build/conformance (report.txt, table.tsv, report.json); known differences
# are in explained.py, any other fails. THROUGH=extension calls the Python package. ARGS=--continue resumes an interrupted run;
# `make bench-peers` installs PyTorch.

.PHONY: conformance conformance-sanitize

# DEVICE=cuda: tensors on cuda:0, without a GPU under the emulation (tests/cuda/host). SAMPLE=10: one sample of ten.
DEVICE ?= cpu
SAMPLE ?= 1
GPU_HERE := $(wildcard /dev/nvidiactl)
CONFORMANCE_CUDA  = $(if $(GPU_HERE),cuda,$(HOST_SO))
CONFORMANCE_DIR   = $(B)/conformance$(if $(filter cuda,$(DEVICE)),-cuda)
# $(call on_device,DEVICE): variables of the environment. PyTorch has loaded a cuFFT of the stand-in's name.
on_device = $(if $(filter cuda,$(1)),$(if $(GPU_HERE),,TENSOR_CUDA_PLUGIN=$(abspath $(HOST_SO)) TENSOR_CUFFT=$(abspath $(HOST_FFT)) TENSOR_CUSOLVER=$(abspath $(HOST_SOLVER)) TENSOR_CUSPARSE=$(abspath $(HOST_SPARSE)) TENSOR_CUDNN=$(abspath $(HOST_DNN))))

# THROUGH=extension: calls of the Python package in place of boxed calls with ctypes.
THROUGH ?= boxed
conformance: $(LIB_SO) $(B)/libtensor.so $(if $(filter extension,$(THROUGH)),python) $(if $(filter cuda,$(DEVICE)),$(CONFORMANCE_CUDA))
	$(Q)$(call on_device,$(DEVICE)) CONFORMANCE_THROUGH=$(THROUGH) PYTHONPATH=$(abspath $(B))/python tests/conformance/run \
		--lib $(LIB_SO) --out $(CONFORMANCE_DIR) --device $(DEVICE) --every $(SAMPLE) $(if $(DTYPE),--dtype $(DTYPE)) $(ARGS) $(OP)

# All samples on a device, gradients too; bench/gpu/check runs a part of them on a GPU.
.PHONY: conformance-cuda
conformance-cuda:
	+$(Q)$(MAKE) --no-print-directory conformance DEVICE=cuda

# The page of a whole run, on a tree that is committed.
# Random programs of views, in-place changes and gradients, run by PyTorch and libtensor.
PROGRAMS ?= 20000
.PHONY: conformance-programs
conformance-programs: $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(B)/conformance
	$(Q)"$$(bench/peers python)" -W ignore -B tests/conformance/programs.py --lib $(LIB_SO) --programs $(PROGRAMS) --seed $(SEED) \
		--json $(B)/conformance/programs.json

# The losses of examples/training in 50 steps, beside PyTorch's with the same weights and batches.
.PHONY: conformance-training
conformance-training: $(addprefix $(B)/examples/,lenet lstm resnet gpt)
	$(Q)"$$(bench/peers python)" -W ignore -B tests/conformance/training.py $(B)

.PHONY: conformance-page
conformance-page:
	$(Q)$(PYTHON) -B tests/conformance/page.py $(B)/conformance/report.json \
		"$$(git log -1 --format='%h of %as')" make conformance >docs/conformance.md

# The same under ASan and UBSan; a report ends the process and is a failure of the call.
conformance-sanitize:
	$(Q)$(MAKE) --no-print-directory B=build/asan CFLAGS="-O1 -g1" \
		SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all" build/asan/libtensor.so
	$(Q)LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:handle_segv=1 \
		tests/conformance/run --lib build/asan/libtensor.so --out build/asan/conformance \
		$(if $(DTYPE),--dtype $(DTYPE)) $(ARGS) $(OP)

# Recorded vectors of PyTorch, for machines without it.
.PHONY: test-golden
test-golden: $(LIB_SO) $(B)/libtensor.so
	$(Q)$(PYTHON) -B tests/conformance/golden.py --lib $(LIB_SO) --build $(B)

# ONNX's node tests, from Debian's libonnx-testdata.
.PHONY: test-onnx
test-onnx: $(LIB_SO) $(B)/libtensor.so
	$(Q)$(PYTHON) -B tests/conformance/onnx_nodes.py --lib $(LIB_SO) --build $(B) $(ARGS)

# Columns beside pyarrow and nanoarrow, in an interpreter that has them: PYTHON_ARROW=/path/to/python.
PYTHON_ARROW ?= $(PYTHON)
.PHONY: test-arrow
test-arrow: $(LIB_SO) $(B)/libtensor.so
	$(Q)$(PYTHON_ARROW) -B tests/conformance/columns.py --lib $(LIB_SO)
