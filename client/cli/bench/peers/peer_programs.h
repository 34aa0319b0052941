// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// Programs of peers, as source text. Both take BYTES and REPETITIONS, sum once more before they
// measure, and print {"seconds_each": […]} by the first member.

// C, for mpicc; started by mpirun.
inline constexpr char kOpenMpiProgram[] = R"(
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int count = atol(argv[1]) / sizeof(float), repetitions = atoi(argv[2]);
  float* const data = malloc(count * sizeof(float));
  float* const sum = malloc(count * sizeof(float));
  for (int i = 0; i < count; ++i) data[i] = i % 7;
  for (int i = -1; i < repetitions; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(data, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - begin;
    if (rank == 0 && i >= 0) printf("%s%.9f", i == 0 ? "{\"seconds_each\":[" : ",", seconds);
  }
  if (rank == 0) printf("]}\n");
  MPI_Finalize();
  return 0;
}
)";

// Python, for PyTorch; starts MEMBERS processes, the third argument, which meet at a file, the
// fourth.
inline constexpr char kGlooProgram[] = R"(
import json
import os
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing


def member(rank, size, repetitions, members, meeting):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + meeting, rank=rank, world_size=members)
    data = torch.ones(size // 4)
    seconds = []
    for _ in range(repetitions + 1):
        data.fill_(1.0)
        torch.distributed.barrier()
        begin = time.perf_counter()
        torch.distributed.all_reduce(data)
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        print(json.dumps({"seconds_each": seconds[1:]}), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    size, repetitions, members = (int(word) for word in sys.argv[1:4])
    meeting = sys.argv[4] + str(os.getpid())
    torch.multiprocessing.spawn(member, (size, repetitions, members, meeting), members)
)";

}  // namespace covey::cli
