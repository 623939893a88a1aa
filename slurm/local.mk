# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += slurm/devcluster slurm/devcluster.d/conf.sh \
	slurm/devcluster.d/net.sh slurm/devcluster.d/daemons.sh
# End of slurm
