# SPDX-License-Identifier: Apache-2.0
# What the templates run. You edit this file, and the #SBATCH lines of the templates.

# The program of a worker, with its arguments; all nodes must see it.
program=(./fashion_mnist --contract buffered)

# The name of the job, which a job that goes on with its snapshots has, too.
name=covey
groups=1            # for job.sbatch: its workers are divided among as many groups
group_size=2        # for servers.sbatch: workers per group; the first one needs as many to begin
servers_per_node=1
workers_per_node=1

# Where covey, covey_scheduler and covey_server are; empty = on the PATH.
binaries=

# true: every process serves metrics at the address of its node, for everybody who reaches it.
metrics=false

# A folder that all nodes see, for snapshots: a job that is started again goes on at the newest one.
# Empty = none.
store=$PWD/store
snapshot_every=10min
