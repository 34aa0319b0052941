// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/bench/measure/turns.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {

// One all-reduce: every member has `bytes` of floats and gets the sum over all.
struct CollectiveCase {
  // "tcp" or "ipc": sockets, or the fastest way between processes of one machine.
  std::string transport;
  uint64_t bytes = 0;
  uint32_t members = 0;
};

// Programs that sum over processes: ours, Open MPI's and gloo's (through PyTorch). Each turn starts
// the processes, which sum several times after a warm-up of their own; the median is the turn's
// value, in us. Confined to one thread.
class CollectivePrograms {
 public:
  // Looks for the programs, and compiles the one for Open MPI. Blocks for seconds.
  CollectivePrograms();

  // Ours, once per name in `algorithms`, and the peers that are installed. Empty without ours. They
  // do not outlive this object.
  std::vector<Contender> MakeContenders(const CollectiveCase& collective,
                                        const std::vector<std::string>& algorithms) const;
  // A line for each program that is not there, with what to install.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  void FindOurs();
  void FindOpenMpi();
  void FindGloo();

  // Each empty when it is not there.
  std::string ours_;
  std::string open_mpi_;
  std::string gloo_script_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::vector<std::string> left_out_;
};

}  // namespace covey::cli
