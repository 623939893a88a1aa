# SPDX-License-Identifier: BSD-3-Clause
HDF5IO_TESTS = \
	tests/hdf5io/test_ahead \
	tests/hdf5io/test_catalogue \
	tests/hdf5io/test_checkpoint \
	tests/hdf5io/test_checkpoint_box \
	tests/hdf5io/test_checkpoint_crash \
	tests/hdf5io/test_checkpoint_damage \
	tests/hdf5io/test_checkpoint_debris \
	tests/hdf5io/test_checkpoint_durable \
	tests/hdf5io/test_checkpoint_fault \
	tests/hdf5io/test_checkpoint_flips \
	tests/hdf5io/test_checkpoint_format \
	tests/hdf5io/test_checkpoint_h5py \
	tests/hdf5io/test_checkpoint_load \
	tests/hdf5io/test_checkpoint_manifest \
	tests/hdf5io/test_checkpoint_parts \
	tests/hdf5io/test_checkpoint_power \
	tests/hdf5io/test_checkpoint_ranks \
	tests/hdf5io/test_checkpoint_retry \
	tests/hdf5io/test_checkpoint_share \
	tests/hdf5io/test_checkpoint_space \
	tests/hdf5io/test_checkpoint_sweep \
	tests/hdf5io/test_checkpoint_verify \
	tests/hdf5io/test_checkpoint_window \
	tests/hdf5io/test_chunks \
	tests/hdf5io/test_convert \
	tests/hdf5io/test_cover \
	tests/hdf5io/test_dataset \
	tests/hdf5io/test_dataset_closed \
	tests/hdf5io/test_dataset_errors \
	tests/hdf5io/test_dataset_look \
	tests/hdf5io/test_dataset_use \
	tests/hdf5io/test_digest \
	tests/hdf5io/test_epoch_reads \
	tests/hdf5io/test_filter \
	tests/hdf5io/test_h5 \
	tests/hdf5io/test_index \
	tests/hdf5io/test_links \
	tests/hdf5io/test_loader \
	tests/hdf5io/test_nodeset \
	tests/hdf5io/test_nodeset_crash \
	tests/hdf5io/test_pool \
	tests/hdf5io/test_safetensors \
	tests/hdf5io/test_sampler \
	tests/hdf5io/test_sampler_lanes \
	tests/hdf5io/test_sampler_reads \
	tests/hdf5io/test_shard_alike \
	tests/hdf5io/test_stage \
	tests/hdf5io/test_stage_fault \
	tests/hdf5io/test_storage \
	tests/hdf5io/test_stream \
	tests/hdf5io/test_transform \
	tests/hdf5io/test_transform_moves \
	tests/hdf5io/test_units \
	tests/hdf5io/test_virtual \
	tests/hdf5io/test_whole
check_PROGRAMS += $(HDF5IO_TESTS)
# The tests that make check-long runs with CDDP_LONG=1.
LONG_CHECKS = tests/hdf5io/test_checkpoint_crash \
	tests/hdf5io/test_checkpoint_flips \
	tests/hdf5io/test_checkpoint_power \
	tests/hdf5io/test_checkpoint_ranks \
	tests/hdf5io/test_nodeset_crash
HDF5IO_TEST_LIBS = libfixtures.la libhdf5io.la libbase.la
$(HDF5IO_TESTS): $(HDF5IO_TEST_LIBS)
$(HDF5IO_TESTS): LDADD = $(HDF5IO_TEST_LIBS) $(HDF5_LIBS) $(TEST_LIBS)
tests_hdf5io_test_filter_LDADD = $(LDADD) $(ZSTD_LIBS) $(BLOSC_LIBS)
tests_hdf5io_test_loader_LDADD = liballoc.la $(LDADD)
tests_hdf5io_test_checkpoint_crash_LDADD = libiotape.la $(LDADD)
tests_hdf5io_test_checkpoint_power_LDADD = libiotape.la $(LDADD)
tests_hdf5io_test_nodeset_crash_LDADD = libiotape.la $(LDADD)
tests_hdf5io_test_checkpoint_load_LDADD = libiocount.la $(LDADD)
tests_hdf5io_test_dataset_look_LDADD = libiocount.la $(LDADD)
tests_hdf5io_test_epoch_reads_LDADD = libiocount.la $(LDADD)
tests_hdf5io_test_index_LDADD = libiocount.la $(LDADD)
tests_hdf5io_test_shard_alike_LDADD = libiocount.la $(LDADD)
tests_hdf5io_test_stage_LDADD = libiocount.la $(LDADD)
tests_hdf5io_test_stage_fault_LDADD = libiotape.la $(LDADD)
tests_hdf5io_test_index_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=hdf5io_filter_zstd_built,--wrap=hdf5io_filter_blosc_built
EXTRA_DIST += tests/hdf5io/h5py_read.py
# End of tests/hdf5io
