// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/net/message.h"
#include "common/simulation/simulator.h"
#include "common/store/testing/memory_folder.h"
#include "tests/sim/network/host_id.h"
#include "tests/sim/process/disk_faults.h"

namespace covey::sim {

// The store of snapshots that all processes share, as on a shared file system. It carries out the
// operations of one host one after the other, as StoreThread does, each after some time.
//
// Until it is healed, operations meet the faults of a disk (disk_faults.h); and the machine behind
// it restarts, which loses what was not synced.
//
// Actor-confined. Deterministic in the simulator's seed.
class SimStore {
 public:
  struct Options {
    DiskFaults::Options disk;
    // Probability that the store restarts at an operation.
    double restarts = 0;
    // How the disk lies, for negative controls.
    MemoryFolder::Lie lie = MemoryFolder::Lie::kNone;
  };
  SimStore(Simulator& simulator, const Options& options);

  // `done` gets the reply, unless the host has crashed by then.
  void Send(HostId host, Message request, std::function<void(Message)> done);
  // The host's process has ended: what waits is not carried out.
  void Stop(HostId host);
  // The store restarts: what is not synced may be lost.
  void Crash();
  // No more faults.
  void Heal() { faults_.Heal(); }

  // As it is now. Looking takes no time, and meets no faults.
  MemoryFolder& folder() { return *folder_; }
  // Called after each operation that has succeeded.
  void OnDone(std::function<void(absl::Time, const Message& request)> callback) {
    on_done_ = std::move(callback);
  }

 private:
  struct Host {
    uint64_t life = 0;  // grows when the process ends
    absl::Time busy_until = absl::InfinitePast();
  };

  void PlanFault(const proto::StoreRequest& request);
  void CarryOut(HostId host, const Message& request, absl::Duration until_reply,
                std::function<void(Message)> done);

  Simulator& simulator_;
  const Options options_;
  Random random_;
  std::unique_ptr<MemoryFolder> folder_;
  std::map<HostId, Host> hosts_;
  DiskFaults faults_;
  std::function<void(absl::Time, const Message&)> on_done_;
};

}  // namespace covey::sim
