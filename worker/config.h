// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/config.h"
#include "common/collective/algorithm.h"
#include "common/tensor/wire_format.h"

namespace covey {
class ConfigFile;
}

namespace covey::worker {

// How a worker joins a cluster and talks to the other members of its group.
struct WorkerConfig {
  // Scheduler, job, wanted rank, labels; operation_deadline is also that of collectives and of each
  // tensor's way through a hybrid step. Shorter reports a lost member or server sooner.
  client::ClientConfig cluster;
  // Address of this machine at which the other members reach this one. Loopback serves one machine;
  // never a public network, because data ports trust every peer that reaches them.
  std::string data_host = "127.0.0.1";
  // "tcp", or "ipc" when all members share a machine: less work per byte.
  std::string transport = "tcp";
  // How long this worker waits for its group to form, and to be whole again when a member dies on
  // the way in, before it gives up; 1 s … 1 h. Longer survives slower starts of the others.
  absl::Duration form_deadline = absl::Seconds(60);
  // How values travel in the group where a collective does not say; the same on all members.
  // kAutomatic: what the members' measurements say is fastest, for each size.
  Algorithm collective = Algorithm::kAutomatic;
  // Encoding of the program's own collectives (not of the hybrid step, where each table says it):
  // float16 and bfloat16 take half of the bytes, int8 a quarter, at a loss (wire_format.h).
  WireFormat collective_wire = WireFormat::kFloat32;

  // INVALID_ARGUMENT: names the field, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program: flag --scheduler, environment COVEY_SCHEDULER, key
  // `scheduler`. The config outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::worker
