// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace covey {
class ConfigFile;
}

namespace covey::client {

// Configures how a process joins a cluster as a client or worker.
struct ClientConfig {
  // "host:port" of the scheduler's control port; with several schedulers "host:port,host:port".
  // Required.
  std::string scheduler;
  // Must equal the scheduler's. 1..256 bytes.
  std::string job = "default";
  // The folder of this process's key and certificate, and of the roots that it trusts
  // (common/security/node_credentials.h). Empty = none: then the scheduler's calls and the data
  // plane are open to everybody who reaches them.
  std::string tls;
  // The requested rank within the role; -1 = any free one.
  int rank = -1;
  // Topology, most general first: zone/rack/host/device; missing parts empty. A worker without
  // labels derives them from its machine (common/runtime/topology_labels.h).
  std::string labels;
  // Joining the cluster fails after this duration. Longer tolerates slower starts; 1 s … 1 h.
  absl::Duration join_deadline = absl::Seconds(30);
  // Deadline of an operation that sets none. Shorter reports a lost server sooner; 100 ms … 1 h.
  absl::Duration operation_deadline = absl::Seconds(60);
  // Bytes of requests in flight at once. More hides latency, less bounds the memory that a server
  // needs for this client; 1 MiB … 1 GiB.
  size_t bytes_in_flight_max = 32 << 20;
  // How long, at most, a thread that waits for a result looks for it before it sleeps; less where
  // results take long. It lets other threads run meanwhile (sched_yield), so this pays on shared
  // cores too; 0 … 1 ms.
  absl::Duration spin = absl::Microseconds(100);

  // INVALID_ARGUMENT: names the field, its value and the range.
  absl::Status Validate() const;
  // Makes the fields options of a program: flag --scheduler, environment COVEY_SCHEDULER, key
  // `scheduler`. Not the rank, which belongs to a process, and a process may hold several clients.
  // The config outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::client
