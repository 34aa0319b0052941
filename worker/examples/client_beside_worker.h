// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/parameter_client.h"
#include "worker/config.h"

namespace covey::examples {

// A client of the worker's job, for tables beside those of the worker's steps. `config`: of the
// worker. Errors are those of ParameterClient::Connect.
absl::StatusOr<std::unique_ptr<client::ParameterClient>> ConnectBesideWorker(
    const worker::WorkerConfig& config);

}  // namespace covey::examples
