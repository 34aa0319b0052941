// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/net/message.h"
#include "common/simulation/simulator.h"
#include "common/store/testing/memory_folder.h"
#include "proto/log.pb.h"
#include "scheduler/log/file_log.h"
#include "tests/sim/process/disk_faults.h"

namespace covey::sim {

// The scheduler's disk: the product's FileLog in a simulated folder, which outlives the process. A
// record takes time, during which the scheduler's loop stands still. When the process ends
// meanwhile, the system calls up to some point were carried out; and in half of all ends the
// machine restarts, too, which loses what was not synced.
//
// Actor-confined. Deterministic in the simulator's seed.
class SimLog {
 public:
  struct Options {
    DiskFaults::Options disk;
    // Probability that the process ends while it writes a record, until the disk is healed.
    double ends = 0;
    uint64_t file_bytes_max = scheduler::FileLog::kFileBytesMax;
  };
  // `end` ends the process, which runs.
  SimLog(Simulator& simulator, const Options& options, std::function<void()> end);

  // As a scheduler does when it starts. Errors as FileLog::Open; then the process is to end.
  absl::StatusOr<std::optional<proto::LogRecord>> Open();
  // `done` gets the reply, unless the process has ended by then. Returns how long the loop that
  // appends stands still.
  absl::Duration Append(Message append, std::function<void(Message)> done);
  // The process has ended.
  void Stop();
  // Empties the folder. Precondition: the process does not run.
  void Wipe() { folder_ = std::make_unique<MemoryFolder>(); }
  // No more faults.
  void Heal() { faults_.Heal(); }

 private:
  struct Pending {
    Message append;
    std::function<void(Message)> done;
  };

  void Write();

  Simulator& simulator_;
  const Options options_;
  const std::function<void()> end_;
  Random random_;
  DiskFaults faults_;
  std::unique_ptr<MemoryFolder> folder_ = std::make_unique<MemoryFolder>();
  // Of the present process.
  uint64_t life_ = 0;  // grows when the process ends
  std::unique_ptr<scheduler::FileLog> log_;
  std::optional<Pending> pending_;
  Message reply_;
};

}  // namespace covey::sim
