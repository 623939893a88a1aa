# SPDX-License-Identifier: BSD-3-Clause
# libimport: from files of other formats to shards.
noinst_LTLIBRARIES += libimport.la
libimport_la_SOURCES = \
	src/import/bpe.c src/import/bpe.h src/import/bpe_priv.h \
	src/import/bpe_cutter.h src/import/bpe_merge.c \
	src/import/cifar.c src/import/cifar.h \
	src/import/columns.c src/import/columns.h \
	src/import/copy.c src/import/copy.h \
	src/import/csv.c src/import/csv.h \
	src/import/csv_cells.c src/import/csv_cells.h \
	src/import/folders.c src/import/folders.h \
	src/import/hdf.c src/import/hdf.h \
	src/import/idx.c \
	src/import/images.c src/import/images.h \
	src/import/npy.c \
	src/import/npz.h \
	src/import/picture.c src/import/picture.h \
	src/import/picture_decode.c src/import/picture_decoder.h \
	src/import/picture_fit.c \
	src/import/raw.c \
	src/import/registry.c \
	src/import/share.c src/import/share.h \
	src/import/sink.c src/import/sink.h \
	src/import/source.h \
	src/import/stream.c src/import/stream.h \
	src/import/text.c src/import/text.h \
	src/import/type.c src/import/type.h
libimport_la_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS) $(ZLIB_CFLAGS) \
	$(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(LIBZIP_CFLAGS) \
	$(PCRE2_CFLAGS) $(JANSSON_CFLAGS)
libimport_la_LIBADD = $(HDF5_LIBS) $(ZLIB_LIBS) $(LIBPNG_LIBS) $(LIBJPEG_LIBS) \
	$(LIBZIP_LIBS) $(PCRE2_LIBS) $(JANSSON_LIBS)
# These are built where configure found their libraries; registry.c knows which.
if LIBPNG
libimport_la_SOURCES += src/import/picture_png.c
endif
if PCRE2
libimport_la_SOURCES += src/import/bpe_words.c
endif
if LIBZIP
libimport_la_SOURCES += src/import/npz.c
endif
if LIBJPEG
libimport_la_SOURCES += src/import/picture_jpeg.c
endif
# End of src/import
