// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/config.h"
#include "common/collective/algorithm.h"
#include "common/runtime/process_priority.h"
#include "common/tensor/wire_format.h"

namespace covey {
class ConfigFile;
}

namespace covey::worker {

// Configures how a worker joins a cluster and talks to the other members of its group.
struct WorkerConfig {
  // Scheduler, job, requested rank, labels. Its operation_deadline also applies to collectives and
  // to each tensor of a hybrid step. Shorter reports a lost member or server sooner.
  client::ClientConfig cluster;
  // The address of this machine at which the other members reach this worker. The loopback default
  // works on one machine only; other addresses need cluster.tls, or `insecure`.
  std::string data_host = "127.0.0.1";
  // Listens at an address beyond this host although cluster.tls is empty: then everybody who
  // reaches it may send messages to this worker, and read those on the way.
  bool insecure = false;
  // How tensors travel (common/net/data_transport.h).
  std::string transport = "auto";
  // HOST:PORT at which this process's metrics and probes answer over plain HTTP, also before it is
  // registered; port 0 = any free one, which the log's line serves_metrics names. Each worker of a
  // host needs a port of its own. Empty = nowhere.
  std::string metrics;
  // kLow: other processes of the host come first, before all threads that this one has then.
  ProcessPriority priority = ProcessPriority::kNormal;
  // How long this worker waits for its group to form, also when a member dies meanwhile and it must
  // form again; 1 s … 1 h. Longer tolerates slower starts of the other members.
  absl::Duration form_deadline = absl::Seconds(60);
  // Asked about ten times per second by the thread that waits in Worker::Join. Once it returns
  // true, Join returns CANCELLED, and leaves the job if it knows that it is registered. Empty =
  // nobody is asked.
  std::function<bool()> gives_up;
  // The algorithm of collectives that do not name one; the same on all members. kAutomatic: the
  // fastest for each size, according to the members' measurements.
  Algorithm collective = Algorithm::kAutomatic;
  // Encoding of the program's own collectives (not of the hybrid step, where each table defines
  // it): formats of 16 bits take half of the bytes, those of 8 a quarter, with a loss
  // (wire_format.h).
  WireFormat collective_wire = WireFormat::kFloat32;

  // INVALID_ARGUMENT: names the field, its value and the range. FAILED_PRECONDITION: other hosts
  // reach data_host or `metrics`, and there is neither cluster.tls nor `insecure`.
  absl::Status Validate() const;
  // Makes every field an option of a program: flag --scheduler, environment COVEY_SCHEDULER, key
  // `scheduler`. The config outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::worker
