// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "client/cli/bench/measure/figure.h"
#include "client/cli/bench/measure/quiet_gate.h"
#include "client/cli/bench/measure/turns.h"

namespace covey::cli {

// The processes that take part in a measurement on this machine, read from /proc. A process that
// has ended, or that belongs to someone else, counts as nothing. Confined to one thread.
class ProcessFamily {
 public:
  // `servers`: the servers of the cluster that run on this machine.
  explicit ProcessFamily(std::vector<pid_t> servers);

  // Of this process and the servers.
  Usage ReadUsage() const;
  // Fills the proportional set sizes. Reading them takes milliseconds per gigabyte.
  void ReadMemory(Cost& cost) const;
  // `own` is the time of this process, of the program that started it when that is the same one,
  // of the servers, and of all their descendants.
  MachineTicks ReadTicks() const;

 private:
  const std::vector<pid_t> servers_;
  // The roots of the family: everything below them is its own.
  std::vector<pid_t> roots_;
};

}  // namespace covey::cli
