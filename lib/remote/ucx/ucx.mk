# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libtensor_ucx.so.0: channels between machines, if UCX's headers are found (Debian's libucx-dev); otherwise prints a line.
# make UCX= builds without it.

UCX ?= $(shell printf '\043include <ucp/api/ucp.h>\n\043include <ucs/debug/log_def.h>\n' | $(CC) -E -xc - >/dev/null 2>&1 && echo yes)

ifneq ($(UCX),)

UCX_SO  := $(B)/libtensor_ucx.so.$(SOVERSION)
UCX_C   := $(wildcard lib/remote/ucx/*.c)
UCX_OBJ := $(UCX_C:%.c=$(B)/obj/%.o)

ALL += $(UCX_SO)

$(UCX_SO): $(UCX_OBJ) $(LIB_SO) $(B)/libtensor.so lib/remote/ucx/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/remote/ucx/plugin.map -Wl,-z,defs -Wl,-z,nodelete \
		-Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(UCX_OBJ) -L$(B) -ltensor -lucp -lucs -pthread

-include $(UCX_OBJ:.o=.d)

else

.PHONY: no-ucx
no-ucx:
	$(call say,SKIP,libtensor_ucx: the headers of UCX were not found (libucx-dev))
ALL += no-ucx

endif
