# SPDX-License-Identifier: Apache-2.0
# What the templates share. They read it in the folder in which sbatch was called.
set -euo pipefail

. ./settings.sh
[[ -z $binaries ]] || PATH=$binaries:$PATH

fail() {
  echo "covey: $1" >&2
  exit 1
}

# The address of a node, as Slurm has it.
address_of() { # NODE
  local found
  found=$(scontrol show node "$1" --oneliner | grep --only-matching 'NodeAddr=[^ ]*')
  found=$(getent ahostsv4 "${found#NodeAddr=}")
  echo "${found%%[[:space:]]*}"
}

# In a task of a step: becomes PROGRAM, with the task's rank and the address of its node.
become() { # PROGRAM...
  export COVEY_RANK=$SLURM_PROCID COVEY_DATA_HOST
  COVEY_DATA_HOST=$(address_of "$SLURMD_NODENAME")
  # A free port: the line serves_metrics of the log has it.
  [[ $metrics != true ]] || export COVEY_METRICS=$COVEY_DATA_HOST:0
  exec "$@"
}
export metrics
export -f address_of become

# Starts a step in the background; $! is its srun. A task or node that dies leaves the others alone.
start() { # STEP TASKS-PER-NODE NODES PROGRAM...
  local step=$1 tasks=$2 nodes=$3
  shift 3
  local count
  count=$(number_of "$nodes")
  srun --job-name="$step" --overlap --no-kill --kill-on-bad-exit=0 --nodelist="$nodes" \
    --nodes="$count" --ntasks=$((tasks * count)) --ntasks-per-node="$tasks" \
    --output="$run/$step-%t.log" bash -c 'become "$@"' "$step" "$@" &
}

number_of() { # NODES
  scontrol show hostnames "$1" | wc --lines
}

# Asks the tasks of a step to end in order. SIGTERM to srun would kill them.
drain() { # STEP
  local id step
  squeue --steps --noheader --jobs="$SLURM_JOB_ID" --format='%i %j' | while read -r id step; do
    # Slurm complains where one of its tasks has ended meanwhile. It may signal twice, when jobs
    # wait in the queue, which makes no difference to Covey.
    [[ $step != "$1" ]] || scancel --signal=TERM "$id" 2>/dev/null || true
  done
}

# Waits for a step, also when a signal comes meanwhile; returns its exit code.
await() { # SRUN
  while kill -0 "$1" 2>/dev/null; do
    wait "$1" || true
  done
  wait "$1"
}

# Starts the scheduler on the first node and a server or several on each, in the folder $run, where
# others find `environment` to join with.
start_servers() { # GROUPS WORKERS-PER-GROUP SCHEDULER-OPTION...
  local groups=$1 workers=$2 first servers
  shift 2
  first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head --lines=1)
  servers=$(($(number_of "$SLURM_JOB_NODELIST") * servers_per_node))
  mkdir --mode=700 "$run"
  # Certificates of this job alone: nobody else who reaches its nodes can take part.
  covey certificates init "$run/ca" >/dev/null
  covey certificates issue "$run/ca" --every-role --job "$name" --out "$run/certificates" >/dev/null
  local with_store=()
  [[ -z $store ]] || with_store=(--store "$store")

  start scheduler 1 "$first" covey_scheduler --job "$name" --tls "$run/certificates/scheduler" \
    --host "$(address_of "$first")" --port-file "$run/port" --servers "$servers" \
    --groups "$groups" --workers "$workers" \
    ${store:+--store "$store" --resume if-any --snapshot-every "$snapshot_every"} "$@"
  scheduler=$!
  until [[ -s $run/port ]]; do
    kill -0 "$scheduler" 2>/dev/null || fail "the scheduler has ended; see $run/scheduler-0.log"
    sleep 0.1
  done
  cat >"$run/environment" <<END
export COVEY_JOB=$name COVEY_SCHEDULER=$(address_of "$first"):$(<"$run/port")
END
  . "$run/environment"

  start servers "$servers_per_node" "$SLURM_JOB_NODELIST" \
    covey_server --tls "$run/certificates/server" "${with_store[@]}"
  servers_step=$!
}

# Servers and scheduler at once: so the last state goes into a snapshot, where there is a store.
# Fails when one of them has failed.
end_servers() {
  local status=0
  drain servers
  drain scheduler
  if ! await "$servers_step"; then
    echo "covey: a server has failed; see $run/servers-*.log" >&2
    status=1
  fi
  if ! await "$scheduler"; then
    echo "covey: the scheduler has failed; see $run/scheduler-0.log" >&2
    status=1
  fi
  return "$status"
}
