# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES = \
	src/train/batch_part.c src/train/batch_part.h \
	src/train/best.c src/train/best.h \
	src/train/begin.c src/train/begin.h \
	src/train/bench.c src/train/bench.h \
	src/train/changes.c src/train/changes.h \
	src/train/check.c \
	src/train/checkpoint.c src/train/checkpoint.h \
	src/train/clocks.c src/train/clocks.h \
	src/train/config.c src/train/config.h \
	src/train/config_data.c src/train/config_stats.c src/train/config_rows.h \
	src/train/data.c src/train/data.h \
	src/train/deadline.c src/train/deadline.h \
	src/train/device.c src/train/device.h \
	src/train/dir_name.c src/train/dir_name.h \
	src/train/eval.c src/train/eval.h \
	src/train/eval_forward.c \
	src/train/feed.c src/train/feed.h \
	src/train/fields.c src/train/fields.h \
	src/train/finite.c src/train/finite.h \
	src/train/flags.c \
	src/train/gpus.c src/train/gpus.h \
	src/train/hello.c src/train/hello.h \
	src/train/hosts.c src/train/hosts.h \
	src/train/init.c src/train/init.h \
	src/train/init_source.c src/train/init_source.h \
	src/train/inputs.c src/train/inputs.h \
	src/train/intro.c src/train/intro.h \
	src/train/join.c \
	src/train/kept.c src/train/kept.h \
	src/train/last_words.c src/train/last_words.h \
	src/train/leave.c src/train/leave.h \
	src/train/leaves.c \
	src/train/limits.c src/train/limits.h \
	src/train/line.c src/train/line.h \
	src/train/places.c src/train/places.h \
	src/train/links.c src/train/links.h \
	src/train/lives.c src/train/lives.h \
	src/train/local_sgd.c \
	src/train/lone.c src/train/lone.h \
	src/train/look.c src/train/look.h \
	src/train/marks.c src/train/marks.h \
	src/train/near.c src/train/near.h \
	src/train/oom.c src/train/oom.h \
	src/train/nodeset.c src/train/nodeset.h \
	src/train/open.c src/train/open.h \
	src/train/memory.c src/train/memory.h \
	src/train/mirror.c src/train/mirror.h \
	src/train/order.c src/train/order.h \
	src/train/outcome.c src/train/outcome.h \
	src/train/outputs.c src/train/outputs.h \
	src/train/own.h \
	src/train/owner.c src/train/owner.h \
	src/train/partners.c src/train/partners.h \
	src/train/patience.c src/train/patience.h \
	src/train/plateau.c src/train/plateau.h \
	src/train/predict.c src/train/predict.h \
	src/train/record.c src/train/record.h \
	src/train/replay.c src/train/replay.h \
	src/train/replica.c src/train/replica.h \
	src/train/relay.c src/train/relay.h \
	src/train/resume.c \
	src/train/resumed.c src/train/resumed.h \
	src/train/rollback.c src/train/rollback.h \
	src/train/run.c src/train/run.h \
	src/train/run_priv.h \
	src/train/rundir.c src/train/rundir.h \
	src/train/same.c src/train/same.h \
	src/train/values.c src/train/values.h \
	src/train/save.c src/train/save.h \
	src/train/save_failed.c src/train/save_failed.h \
	src/train/saver.c src/train/saver.h \
	src/train/score.c src/train/score.h \
	src/train/score_priv.h \
	src/train/score_sums.c \
	src/train/seen.c src/train/seen.h \
	src/train/settings.c src/train/settings.h \
	src/train/shard.c src/train/shard.h \
	src/train/sound.c src/train/sound.h \
	src/train/spike.c src/train/spike.h \
	src/train/spread.c src/train/spread.h \
	src/train/stage.c src/train/stage.h \
	src/train/start.c src/train/start.h \
	src/train/step.c src/train/step.h \
	src/train/step_end.c src/train/step_in.c \
	src/train/step_io.c src/train/step_io.h \
	src/train/straggler.c src/train/straggler.h \
	src/train/sweeper.c src/train/sweeper.h \
	src/train/sync.c src/train/sync.h \
	src/train/tail.h \
	src/train/team.c src/train/team.h \
	src/train/touch.c src/train/touch.h \
	src/train/trace.c src/train/trace.h \
	src/train/trouble.c src/train/trouble.h \
	src/train/turn.c src/train/turn.h \
	src/train/view.c src/train/view.h \
	src/train/vote.c src/train/vote.h \
	src/train/ways.c src/train/ways.h \
	src/train/weigh.c src/train/weigh.h \
	src/train/world.c src/train/world.h \
	src/train/writers.c src/train/writers.h
# -fopenmp-simd: only the vectorising hint, no OpenMP runtime.
libtrain_la_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS) -fopenmp-simd

# All that a training program links, in the order of use.
TRAIN_LIBS = libtrain.la libconf.la libddp.la libnn.la liboptim.la libop.la \
	libsimd.la libcomm.la libboot.la libdev.la libobs.la libhdf5io.la libslurm.la \
	libbase.la
# End of src/train
