# SPDX-License-Identifier: Apache-2.0
"""What has started this process, as one of how many: torchrun, MPI, Slurm, Kubernetes and others.

join() takes the rank from here when neither its argument nor COVEY_RANK gives one.
`python3 -m covey.launch` prints what is found.

A launcher is known by a variable that it alone sets. Of several the innermost one counts: in a
torchrun that srun has started, torchrun's. The order is that of the functions in _LAUNCHERS.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Callable, Mapping

from covey.errors import InvalidArgument

_Environment = Mapping[str, str]
# Far more than any launcher writes there.
_TF_CONFIG_BYTES_MAX = 1 << 20


@dataclasses.dataclass(frozen=True)
class Launch:
    """Where this process is among those that were started together.

    Attributes:
        launcher: for people: "torchrun", "Open MPI"; "nothing" when none is known.
        rank: among all processes, from 0; None = not told.
        size: how many there are; None = not told.
        local_rank: among those on this machine, from 0: the number of the GPU to use.
        local_size: how many there are on this machine; None = not told.
        variables: the variables that say so.
        notes: what a user should know, for the log.
    """

    launcher: str = "nothing"
    rank: int | None = None
    size: int | None = None
    local_rank: int = 0
    local_size: int | None = None
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def detect(environment: _Environment | None = None) -> Launch:
    """Finds the launcher by its variables; `environment` is os.environ when not given.

    Raises InvalidArgument when they are no numbers or contradict each other; names them.
    """
    environment = os.environ if environment is None else environment
    for mark, launcher in _LAUNCHERS:
        if environment.get(mark):
            return launcher(environment)
    return Launch(notes=_notes(environment))


def explain(environment: _Environment | None = None) -> str:
    """What detect() finds, and from which variables, a line each, for people."""
    found = detect(environment)
    values = {"rank": found.rank, "size": found.size, "local rank": found.local_rank,
              "local size": found.local_size}
    lines = [f"launched by {found.launcher}"]
    lines += [f"{name}: {'not told' if value is None else value}" for name, value in values.items()]
    if found.variables:
        lines.append(f"variables: {', '.join(found.variables)}")
    return "\n".join([*lines, *found.notes])


def _number(environment: _Environment, name: str, launcher: str) -> int:
    text = environment.get(name)
    if text is None:
        raise InvalidArgument(f"launch: this looks like {launcher}, but {name} is not set; start the "
                              f"program with {launcher}, or give join() a rank")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidArgument(f"launch: {name} is '{text[:40]}', which is no number from 0; "
                              f"{launcher} sets it: start the program with {launcher}")
    return int(text)


def _maybe(environment: _Environment, name: str, launcher: str) -> int | None:
    return _number(environment, name, launcher) if name in environment else None


def _launch(environment: _Environment, launcher: str, *, rank: str | None, size: str | None,
            local_rank: str | None = None, local_size: str | None = None,
            notes: tuple[str, ...] = ()) -> Launch:
    """`rank` and the rest: names of variables, of which the first two must be there if given."""
    found = Launch(
        launcher, None if rank is None else _number(environment, rank, launcher),
        None if size is None else _number(environment, size, launcher),
        (_maybe(environment, local_rank, launcher) or 0) if local_rank else 0,
        _maybe(environment, local_size, launcher) if local_size else None,
        tuple(name for name in (rank, size, local_rank, local_size)
              if name is not None and name in environment), notes)
    if found.rank is not None and found.size is not None and found.rank >= found.size:
        raise InvalidArgument(f"launch: {rank} is {found.rank} and {size} is {found.size}, and ranks "
                              f"count from 0; start the program with {launcher}")
    if found.local_size is not None and found.local_rank >= found.local_size:
        raise InvalidArgument(
            f"launch: {local_rank} is {found.local_rank} and {local_size} is {found.local_size}, and "
            f"ranks count from 0; start the program with {launcher}")
    return found


def _covey(environment: _Environment) -> Launch:
    # -1 = any rank, as in the settings of the library.
    if environment["COVEY_RANK"] == "-1":
        return Launch("COVEY_RANK", size=_maybe(environment, "COVEY_WORLD_SIZE", "COVEY_WORLD_SIZE"),
                      variables=("COVEY_RANK",))
    size = "COVEY_WORLD_SIZE" if "COVEY_WORLD_SIZE" in environment else None
    return _launch(environment, "COVEY_RANK", rank="COVEY_RANK", size=size)


def _torchrun(environment: _Environment) -> Launch:
    return _launch(environment, "torchrun", rank="RANK", size="WORLD_SIZE", local_rank="LOCAL_RANK",
                   local_size="LOCAL_WORLD_SIZE")


def _horovod(environment: _Environment) -> Launch:
    return _launch(environment, "horovodrun", rank="HOROVOD_RANK", size="HOROVOD_SIZE",
                   local_rank="HOROVOD_LOCAL_RANK", local_size="HOROVOD_LOCAL_SIZE")


def _open_mpi(environment: _Environment) -> Launch:
    return _launch(environment, "Open MPI", rank="OMPI_COMM_WORLD_RANK", size="OMPI_COMM_WORLD_SIZE",
                   local_rank="OMPI_COMM_WORLD_LOCAL_RANK", local_size="OMPI_COMM_WORLD_LOCAL_SIZE")


def _mpich(environment: _Environment) -> Launch:
    return _launch(environment, "MPICH", rank="PMI_RANK", size="PMI_SIZE",
                   local_rank="MPI_LOCALRANKID", local_size="MPI_LOCALNRANKS")


def _srun(environment: _Environment) -> Launch:
    return _launch(environment, "srun", rank="SLURM_PROCID", size="SLURM_STEP_NUM_TASKS",
                   local_rank="SLURM_LOCALID")


def _indexed_job(environment: _Environment) -> Launch:
    name = "an indexed job of Kubernetes"
    if "COVEY_WORLD_SIZE" in environment:
        return _launch(environment, name, rank="JOB_COMPLETION_INDEX", size="COVEY_WORLD_SIZE")
    return _launch(environment, name, rank="JOB_COMPLETION_INDEX", size=None)


def _tf_config(environment: _Environment) -> Launch:
    text = environment["TF_CONFIG"]
    try:
        if len(text) > _TF_CONFIG_BYTES_MAX:
            raise ValueError("it is too long")
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        chiefs = len(cluster.get("chief", []))
        size = chiefs + len(cluster["worker"])
        kind, index = str(task["type"]), int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgument(f"launch: TF_CONFIG cannot be read ({error}); it must have cluster.worker, "
                              "task.type and task.index") from None
    if kind not in ("chief", "worker"):
        raise InvalidArgument(f"launch: TF_CONFIG says that this process is a '{kind}'; Covey's servers "
                              "are covey_server, and programs that train are workers")
    rank = index if kind == "chief" else chiefs + index
    if not 0 <= rank < size:
        raise InvalidArgument(f"launch: TF_CONFIG names {size} workers, and this would be rank {rank}")
    return Launch("TF_CONFIG", rank, size, variables=("TF_CONFIG",))


def _dmlc(environment: _Environment) -> Launch:
    role = environment["DMLC_ROLE"]
    if role != "worker":
        raise InvalidArgument(f"launch: DMLC_ROLE is '{role[:40]}'; start covey_scheduler and "
                              "covey_server for these roles, and this program as worker")
    rank = "DMLC_WORKER_ID" if "DMLC_WORKER_ID" in environment else None
    return _launch(environment, "DMLC_ROLE", rank=rank, size="DMLC_NUM_WORKER")


def _bare(environment: _Environment) -> Launch:
    if "RANK" not in environment:  # nobody means ranks by that
        return Launch(notes=_notes(environment))
    return _launch(environment, "RANK and WORLD_SIZE", rank="RANK", size="WORLD_SIZE",
                   local_rank="LOCAL_RANK", local_size="LOCAL_WORLD_SIZE")


def _notes(environment: _Environment) -> tuple[str, ...]:
    """sbatch runs its script once, with the variables of a first task."""
    job, tasks = environment.get("SLURM_JOB_ID"), environment.get("SLURM_NTASKS", "1")
    if job is None or tasks == "1":
        return ()
    return (f"this process is the batch script of Slurm's job {job}, which runs once; for one process "
            f"in each of its {tasks} tasks, start the program with srun",)


# A launcher's mark and its function, innermost first.
_LAUNCHERS: tuple[tuple[str, Callable[[_Environment], Launch]], ...] = (
    ("COVEY_RANK", _covey),
    ("TORCHELASTIC_RUN_ID", _torchrun),
    ("HOROVOD_RANK", _horovod),
    ("OMPI_COMM_WORLD_RANK", _open_mpi),
    ("HYDI_CONTROL_FD", _mpich),
    ("SLURM_STEP_ID", _srun),
    ("JOB_COMPLETION_INDEX", _indexed_job),
    ("TF_CONFIG", _tf_config),
    ("DMLC_ROLE", _dmlc),
    ("WORLD_SIZE", _bare),
)
