# nginx's headers for the pure files, which are compiled and linked without
# nginx itself, and the rooms of the module's sources.  ROOT and SRC are set by
# who includes this.

SHELL := /bin/bash

NGX_SRC ?= /usr/share/nginx/src

ifndef NGX_INC
NGX_INC := $(firstword $(dir $(wildcard $(ROOT)/build/objs/ngx_auto_config.h)) \
    $(ROOT)/build/unit/nginx)
endif

NGX_CONFIG := $(NGX_INC)/ngx_auto_config.h

KEXEC_DIRS := $(SRC) $(patsubst %/, %, $(wildcard $(SRC)/*/))
KEXEC_CPPFLAGS := $(addprefix -I , $(KEXEC_DIRS))

# $(call kexec_sources, json zone_*): the files of these names, in any room

kexec_sources = $(wildcard $(foreach dir, $(KEXEC_DIRS), \
    $(foreach name, $1, $(dir)/ngx_kexec_$(name).c)))

NGX_CPPFLAGS := -isystem $(NGX_SRC)/src/core -isystem $(NGX_SRC)/src/event \
    -isystem $(NGX_SRC)/src/event/modules -isystem $(NGX_SRC)/src/event/quic \
    -isystem $(NGX_SRC)/src/os/unix -isystem $(NGX_INC)

NGX_HTTP_CPPFLAGS := -isystem $(NGX_SRC)/src/http \
    -isystem $(NGX_SRC)/src/http/modules -isystem $(NGX_SRC)/src/http/v2 \
    -isystem $(NGX_SRC)/src/http/v3

# Debian's configure runs from its own directory and writes to --builddir alone

$(ROOT)/build/unit/nginx/ngx_auto_config.h:
	@mkdir -p $(ROOT)/build/unit
	dir=$$(cd $(ROOT)/build/unit && pwd) && cd $(NGX_SRC) && \
	. ./conf_flags && ./configure "$${NGX_CONF_FLAGS[@]}" \
	    --builddir=$$dir/nginx > $$dir/configure.log || \
	    { tail -n 20 $$dir/configure.log; exit 1; }
