// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/options.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/examples/choices.h"

namespace covey::fashion_mnist {
using examples::InRange;

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--epochs", epochs, 1, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--batch", batch, 1, 4096));
  COVEY_RETURN_IF_ERROR(InRange("--learning-rate", learning_rate, 1e-6, 100.0));
  COVEY_RETURN_IF_ERROR(InRange("--loss-scale", loss_scale, 1e-6, 1e9));
  COVEY_RETURN_IF_ERROR(InRange("--momentum", momentum, 0.0, 0.9999));
  COVEY_RETURN_IF_ERROR(InRange("--outer-learning-rate", outer_learning_rate, 1e-6, 10.0));
  COVEY_RETURN_IF_ERROR(InRange("--outer-momentum", outer_momentum, 0.0, 0.9999));
  if (contract.kind != Contract::Kind::kLocal &&
      (outer_learning_rate != 1 || outer_momentum != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--outer-learning-rate and --outer-momentum are for rounds, and --contract is ",
        ContractName(contract), ", which has none; choose local:H, or leave them out"));
  }
  COVEY_RETURN_IF_ERROR(InRange("--hidden", hidden, 1, 4096));
  COVEY_RETURN_IF_ERROR(InRange("--lag", lag, 0, 1));
  COVEY_RETURN_IF_ERROR(InRange("--grow-batch", grow_batch, 1, 64));
  if (!std::has_single_bit(grow_batch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--grow-batch is ", grow_batch, ", and the batch only doubles; choose a power of two"));
  }
  if (grow_batch > 1 && has_fixed_split()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--grow-batch is ", grow_batch, ", and a fixed split has steps of one size; ",
                     "leave out --fixed-split and --target-accuracy, or --grow-batch"));
  }
  if (measures_noise() && adasum) {
    return absl::InvalidArgumentError(
        "--adasum takes no mean of gradients to measure their noise by; leave it out, or "
        "--measure-noise, --grow-batch and --scale-rate");
  }
  COVEY_RETURN_IF_ERROR(InRange("--scale-rate", scale_rate, 0, 1e6));
  COVEY_RETURN_IF_ERROR(InRange("--target-accuracy", target_accuracy, 0, 1));
  return InRange("--evaluate-every", evaluate_every, 1, 1e9);
}

void Options::AddTo(ConfigFile& options) {
  examples::AddContract(options, &contract);
  options.Add("epochs", &epochs, "passes over the training data");
  options.Add("batch", &batch, "samples per worker and step");
  options.Add("learning-rate", &learning_rate, "peak of the schedule");
  options.Add("momentum", &momentum, "coefficient of Nesterov's method");
  options.Add("outer-learning-rate", &outer_learning_rate,
              "under local, rate of the servers' update with the groups' changes");
  options.Add("outer-momentum", &outer_momentum,
              "under local, momentum of the servers' update, by Nesterov's method");
  options.Add("automatic-momentum", &automatic_momentum,
              "under ssp and async, servers subtract the momentum that asynchrony adds");
  examples::AddWireFormat(options, &wire);
  examples::AddValueFormat(options, &value_wire);
  options.Add("loss-scale", &loss_scale,
              "factor of the loss, which the learning rate makes good; for --wire float16");
  options.Add("update-on-members", &update_on_members,
              "members run the optimizer instead of servers; for one group under bsp");
  options.Add("adasum", &adasum,
              "combine the gradients of a group's members by Adasum in place of their mean");
  options.Add("lag", &lag, "steps by which the values lag: 0 or 1");
  options.Add("autotune", &autotune,
              "try settings of the group's messages while training, and stay with the fastest");
  options.Add("measure-noise", &measure_noise,
              "measure the noise of the gradients in a group of two or more");
  options.Add("grow-batch", &grow_batch,
              "the batch doubles while the noise asks for it, up to so many times");
  options.Add(
      "scale-rate", &scale_rate,
      "samples of a group's step that the rate was tuned for, so that it follows the batch");
  options.Add("target-accuracy", &target_accuracy,
              "report the samples that this test accuracy takes; 0 = off");
  options.Add("evaluate-every", &evaluate_every, "samples between two evaluations of the target");
  options.Add("stop-at-target", &stop_at_target, "end when the target is reached");
  options.Add("fixed-split", &fixed_split,
              "each worker trains its own part of each pass, and all are needed to the end");
  options.Add("hidden", &hidden, "neurons of the hidden layer");
  options.Add("seed", &seed, "seed of initial values and of the order of samples");
  options.Add("data-dir", &data_dir, "folder with the four files of the dataset");
}

}  // namespace covey::fashion_mnist
