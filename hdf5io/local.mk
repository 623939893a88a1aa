# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libhdf5io.la
libhdf5io_la_SOURCES =
libhdf5io_la_SOURCES += hdf5io/h5.c
libhdf5io_la_SOURCES += hdf5io/h5.h
libhdf5io_la_SOURCES += hdf5io/h5mpi.c
libhdf5io_la_SOURCES += hdf5io/h5mpi.h
# Dataset, sampler, loader
libhdf5io_la_SOURCES += hdf5io/attribute.c
libhdf5io_la_SOURCES += hdf5io/attribute.h
libhdf5io_la_SOURCES += hdf5io/column.c
libhdf5io_la_SOURCES += hdf5io/column.h
libhdf5io_la_SOURCES += hdf5io/column_read.c
libhdf5io_la_SOURCES += hdf5io/column_way.c
libhdf5io_la_SOURCES += hdf5io/column_way.h
libhdf5io_la_SOURCES += hdf5io/convert.c
libhdf5io_la_SOURCES += hdf5io/convert.h
libhdf5io_la_SOURCES += hdf5io/cover.c
libhdf5io_la_SOURCES += hdf5io/cover.h
libhdf5io_la_SOURCES += hdf5io/dataset.c
libhdf5io_la_SOURCES += hdf5io/dataset.h
libhdf5io_la_SOURCES += hdf5io/dataset_impl.h
libhdf5io_la_SOURCES += hdf5io/dataset_read.c
libhdf5io_la_SOURCES += hdf5io/dataset_use.c
libhdf5io_la_SOURCES += hdf5io/digest.c
libhdf5io_la_SOURCES += hdf5io/digest.h
libhdf5io_la_SOURCES += hdf5io/external.c
libhdf5io_la_SOURCES += hdf5io/external.h
libhdf5io_la_SOURCES += hdf5io/home.c
libhdf5io_la_SOURCES += hdf5io/home.h
libhdf5io_la_SOURCES += hdf5io/links.c
libhdf5io_la_SOURCES += hdf5io/links.h
libhdf5io_la_SOURCES += hdf5io/loader.c
libhdf5io_la_SOURCES += hdf5io/loader.h
libhdf5io_la_SOURCES += hdf5io/names.c
libhdf5io_la_SOURCES += hdf5io/names.h
libhdf5io_la_SOURCES += hdf5io/sampler.c
libhdf5io_la_SOURCES += hdf5io/sampler.h
libhdf5io_la_SOURCES += hdf5io/shard.c
libhdf5io_la_SOURCES += hdf5io/shard.h
libhdf5io_la_SOURCES += hdf5io/shard_paths.c
libhdf5io_la_SOURCES += hdf5io/virtual.c
libhdf5io_la_SOURCES += hdf5io/virtual.h
libhdf5io_la_SOURCES += hdf5io/virtual_piece.c
libhdf5io_la_SOURCES += hdf5io/virtual_priv.h
# Checkpoint
libhdf5io_la_SOURCES += hdf5io/checkpoint.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_box.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_box.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_data.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_data.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_dir.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_dir.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_fetch.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_files.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_io.c hdf5io/checkpoint_io_read.c \
	hdf5io/checkpoint_list.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_io.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_manifest.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_manifest.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_manifest_parse.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_manifest_print.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_read.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_read.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_shard.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_shared.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_view.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_vote.c
libhdf5io_la_SOURCES += hdf5io/checkpoint_vote.h
libhdf5io_la_SOURCES += hdf5io/checkpoint_write.c
libhdf5io_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
# The same bits from a sample on every machine: no fused multiply-add.
libhdf5io_la_CFLAGS += -ffp-contract=off
libhdf5io_la_CFLAGS += $(JANSSON_CFLAGS) $(XXHASH_CFLAGS)
libhdf5io_la_LIBADD = $(HDF5_LIBS) $(MPI_LIBS)
libhdf5io_la_LIBADD += $(JANSSON_LIBS) $(XXHASH_LIBS)
EXTRA_DIST += docs/FORMATS.md
# End of hdf5io
