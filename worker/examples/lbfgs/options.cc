// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/lbfgs/options.h"

#include "common/base/status_macros.h"
#include "worker/examples/choices.h"

namespace covey::lbfgs {
using examples::InRange;

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--features", size.features, 2, 1 << 26));
  COVEY_RETURN_IF_ERROR(InRange("--samples", size.samples, 1, 1e7));
  COVEY_RETURN_IF_ERROR(InRange("--features-per-sample", size.features_per_sample, 1, 1024));
  COVEY_RETURN_IF_ERROR(InRange("--shard-mib", shard_mib, 1, 16));
  COVEY_RETURN_IF_ERROR(InRange("--history", settings.history, 1, 20));
  COVEY_RETURN_IF_ERROR(InRange("--iterations", settings.iterations, 1, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--tolerance", settings.tolerance, 0, 1));
  return InRange("--l2", settings.l2, 1e-9, 10);
}

void Options::AddTo(ConfigFile& options) {
  options.Add("features", &size.features, "features, the elements of the model");
  options.Add("samples", &size.samples, "samples of all workers together");
  options.Add("features-per-sample", &size.features_per_sample, "features of a sample");
  options.Add("seed", &seed, "seed of the samples");
  options.Add("shard-mib", &shard_mib, "largest shard, MiB; fewer shards = fewer messages");
  options.Add("history", &settings.history, "pairs of differences that are kept");
  options.Add("iterations", &settings.iterations, "iterations at most");
  options.Add("tolerance", &settings.tolerance,
              "ends when the gradient's norm is this part of the first one's");
  options.Add("l2", &settings.l2, "coefficient of half the square of the weights' norm");
}

}  // namespace covey::lbfgs
