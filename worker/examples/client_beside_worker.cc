// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/client_beside_worker.h"

namespace covey::examples {

absl::StatusOr<std::unique_ptr<client::ParameterClient>> ConnectBesideWorker(
    const worker::WorkerConfig& config) {
  client::ClientConfig cluster = config.cluster;
  cluster.rank = -1;  // which the worker has
  return client::ParameterClient::Connect(cluster);
}

}  // namespace covey::examples
