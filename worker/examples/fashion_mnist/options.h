// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/tensor/wire_format.h"

namespace covey::fashion_mnist {

// Command-line options of a training run; they must be the same for all workers of a run.
//
// The defaults exceed 0.88 test accuracy for four workers in one or two groups, under every
// contract, and for four groups when pushes are buffered. The learning rate suits `batch` times the
// number of workers.
struct Options {
  // The contract of the tables between the groups. Under local:H, rate and momentum are those of a
  // group's own steps (the inner optimizer), the schedule spans a group's part of the run, and
  // servers update once a round with the groups' changes (the outer optimizer).
  Contract contract;
  // Passes over the training data, 1 to 1000. More is more accurate, up to a point, and slower.
  uint64_t epochs = 10;
  // Samples per worker and step, 1 to 4096; a group's step has this many per member. Larger means
  // fewer steps, hence fewer messages.
  uint64_t batch = 64;
  // Peak of the schedule, 1e-6 to 100: rises from 0, then falls to 0 along half a cosine. A value
  // that is too large diverges, one that is too small learns slowly.
  double learning_rate = 0.05;
  // Momentum of Nesterov's method, 0 to 0.9999.
  double momentum = 0.9;
  // Under local:H, of the outer optimizer: the rate, 1e-6 to 10, and the momentum of Nesterov's
  // method, 0 to 0.9999. The defaults take the mean of the groups' values, which has nothing to
  // tune, however long rounds are. Douillard et al. 2023 use 0.7 and 0.9 with long rounds.
  double outer_learning_rate = 1;
  double outer_momentum = 0;
  // True: where pushes are applied on arrival (ssp, async), `momentum` is the sum of the momentum
  // of asynchrony and of the optimizer; servers measure the former and set the latter. False: what
  // asynchrony adds comes on top, so lower `momentum` when there are many groups.
  bool automatic_momentum = true;
  // The gradients' format on the wire; less than 32 bits sends less and rounds more.
  WireFormat wire = WireFormat::kFloat32;
  // The wire format of values on their way back.
  WireFormat value_wire = WireFormat::kFloat32;
  // Factor of the loss, 1e-6 to 1e9; the learning rate is divided by it. With `wire` float16 it
  // keeps the sums of gradients in the range of the format, as torch.amp.GradScaler does; formats
  // with scales of their own, and float32, need none.
  double loss_scale = 1;
  // True: the group's members run the optimizer, each for its part, and servers only provide the
  // initial values; for one group under bsp.
  bool update_on_members = false;
  // True: the gradients of a group's members are combined by Adasum in place of their mean
  // (worker/hybrid_options.h), for `batch` times the workers that is larger than the learning rate
  // allows.
  bool adasum = false;
  // 0 or 1. With 1, a step computes with the values of the step before last, which hides
  // communication behind a whole step's computation.
  uint32_t lag = 0;
  // True: the group tries settings while it trains, and stays with the fastest
  // (worker/hybrid_options.h).
  bool autotune = false;
  // True: the noise of the gradients in this worker's group is measured and printed
  // (worker/gradient_noise.h). A group of one member shows none. The next two measure it, too.
  bool measure_noise = false;
  // Above 1: each worker's batch doubles while the noise of the gradients asks for it
  // (worker/batch_growth.h), up to so many times `batch`; a power of two, 1 to 64. Needs as much
  // more memory for a batch, and workers that take the next examples (fixed_split).
  uint64_t grow_batch = 1;
  // Above 0: learning_rate was tuned for a group's step of so many samples, and follows the batch
  // of the group's steps by GradientNoise::RateGain; up to 10^6. 0: it is as it is.
  uint64_t scale_rate = 0;
  // Target test accuracy, 0 to 1; the result says after how many samples and seconds it was
  // reached. 0 = none.
  // With a target all workers synchronize every `evaluate_every` samples of the whole run, 1 to
  // 10^9, and evaluate.
  double target_accuracy = 0;
  uint64_t evaluate_every = 6000;
  // The run ends when the target accuracy is reached.
  bool stop_at_target = false;
  // True: each worker trains its own part of each pass, whatever its speed, and the run needs all
  // workers to the end; always true with a target. False: workers take the next examples, and the
  // others do the work of lost ones.
  bool fixed_split = false;
  // Neurons of the hidden layer, 1 to 4096. Time and memory are proportional to it.
  uint64_t hidden = 256;
  // Seed of initial values and of the order of samples.
  uint64_t seed = 1;
  // The folder with the four files of the dataset.
  std::string data_dir = "/usr/share/datasets/fashion-mnist";

  bool measures_noise() const { return measure_noise || grow_batch > 1 || scale_rate > 0; }
  bool has_fixed_split() const { return fixed_split || target_accuracy > 0; }

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::fashion_mnist
