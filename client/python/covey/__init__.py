# SPDX-License-Identifier: Apache-2.0
"""Covey: sharded parameter servers for training in groups.

Parameters live on servers. A program reads and changes them as a client, or trains with others as a
worker:

    import covey

    with covey.connect("127.0.0.1:7000") as client:
        table = client.create_table(covey.TableSpec("w", shape=(4,), optimizer=covey.sgd(0.1)))
        table.push(gradient, samples=64).wait()
        values = table.pull().wait().values

    with covey.join() as worker:                      # in a group; see `covey run`
        worker.group.all_reduce(array).wait()

    worker = covey.init(servers=2)                    # starts the servers, too: one machine, to try it

Settings that are not given come from the environment (COVEY_SCHEDULER, COVEY_JOB, ...), then from the
file that COVEY_CONFIG names. covey.torch is for PyTorch.

Arrays are NumPy arrays, or anything with a buffer of float32 that is contiguous in C's order, or CPU
tensors of PyTorch. They are used in place and never copied.

After fork (for example in a DataLoader's process), objects of the parent raise FailedPrecondition.
"""

from covey import _libraries

try:
    import covey._native as _native
except ImportError as error:
    raise ImportError(_libraries.missing(error)) from error

from covey.client import Client, TableState, connect
from covey.definitions import (Optimizer, SparseTableSpec, TableSpec, adagrad, adam, adamw, constant,
                               cosine, ftrl, lamb, lars, linear, momentum, nesterov, norm_gate,
                               normal, rowwise_adagrad, sgd, step_decay, uniform, vectors)
from covey.errors import (Aborted, AlreadyExists, Cancelled, CoveyError, DataLoss, DeadlineExceeded,
                          FailedPrecondition, Internal, InvalidArgument, NotFound, OutOfRange,
                          PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable)
from covey.handle import Handle, Result
from covey.local_cluster import init
from covey.local_rows import LocalRows
from covey.source import DataSource
from covey.sparse import (Batch, CacheCounts, FilterCounts, RowCache, RowFilter, RowPiece, RowReader,
                          SparseTable)
from covey.step import Step
from covey.table import Table
from covey.vector_table import Answers, Function, Query, Vectors
from covey.worker import Group, Worker, join

__version__ = _native.library_version()

__all__ = [
    "Aborted", "AlreadyExists", "Answers", "Batch", "CacheCounts", "Cancelled", "Client",
    "CoveyError", "DataLoss", "DataSource", "DeadlineExceeded", "FailedPrecondition",
    "FilterCounts", "Function", "Group", "Handle", "Internal", "InvalidArgument", "LocalRows",
    "NotFound", "Optimizer", "OutOfRange", "PermissionDenied", "Query", "ResourceExhausted",
    "Result", "RowCache", "RowFilter", "RowPiece", "RowReader", "SparseTable", "SparseTableSpec",
    "Step", "Table", "TableSpec", "TableState", "Unauthenticated", "Unavailable", "Vectors",
    "Worker", "adagrad", "adam", "adamw", "connect", "constant", "cosine", "ftrl", "init", "join",
    "keep_freed_memory", "lamb", "lars", "linear", "momentum", "nesterov", "norm_gate", "normal",
    "rowwise_adagrad", "sgd", "step_decay", "uniform", "vectors",
]


def keep_freed_memory() -> None:
    """Lets freed memory stay with the process, for all code in it.

    Messages come and go by the megabyte, and the first touch of new pages is several times slower
    than the network: large transfers become faster, and the process a little larger. Call it
    before connect or join.
    """
    _native.keep_freed_memory()
