# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libboot.la
libboot_la_SOURCES = \
	src/boot/boot.c src/boot/boot.h src/boot/boot_backend.h \
	src/boot/boot_handle.c \
	src/boot/boot_solo.c \
	src/boot/boot_spawn.c src/boot/spawn_wire.h \
	src/boot/spawn_hub.c src/boot/spawn_hub.h \
	src/boot/spawn_run.c \
	src/boot/boot_threads.c \
	src/boot/boot_pmix.c \
	src/boot/boot_wire.c src/boot/boot_wire.h
libboot_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
libboot_la_LIBADD = $(PMIX_LIBS)
# End of src/boot
