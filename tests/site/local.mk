# SPDX-License-Identifier: BSD-3-Clause
# What a site installs, as it is installed.
dist_check_SCRIPTS += tests/site/completion.sh tests/site/install.sh \
	tests/site/modules.sh tests/site/packages.sh tests/site/slurm_conf.sh
# admin-guide.sh and other-debian.sh are run by hand.
EXTRA_DIST += tests/site/admin-guide.sh tests/site/module_user.sh \
	tests/site/modulelib.sh tests/site/other-debian.sh \
	tests/site/packages.py tests/site/rootlib.sh tests/site/unpack
# End of tests/site
