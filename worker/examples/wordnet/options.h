// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/runtime/config_file.h"
#include "worker/examples/wordnet/graph.h"

namespace covey::wordnet {

// The facts whose questions are asked at the end.
enum class Part { kValidation, kTest };

// Command-line options of a run; they must be the same for all workers of a run.
//
// The defaults reach a filtered MRR above 0.50 on the split "rr", with any number of groups.
struct Options {
  Split split = Split::kFacts;
  Part evaluate = Part::kTest;
  // Passes over the training facts, 1 to 1000.
  uint64_t passes = 5;
  // Questions of a worker's step, and entities that all of these share as negatives; 1 to 65,536.
  uint64_t batch = 512;
  uint64_t negatives = 256;
  // Elements of a row, half of them imaginary parts; even, 2 to 1024.
  uint64_t width = 64;
  // Of Adagrad, 1e-6 to 10.
  double learning_rate = 0.1;
  // Coefficient of the regularizer N3, 0 to 10.
  double n3 = 0.05;
  // Entities begin as N(0, 0.1), relations as N(relation_mean, 0.5). At a mean of 1 a relation
  // begins near the identity, which ranks first what is alike, and stays there.
  double relation_mean = 0;
  // Asks at once: a control that shows what the figures are worth.
  bool untrained = false;
  // As GraphOptions.
  uint64_t neighbors_min = 3;
  uint64_t held_out = 3000;
  // Seed of the split, of initial values, of negatives and of the order of questions.
  uint64_t seed = 1;
  // The folder with WordNet's data files.
  std::string data_dir = "/usr/share/wordnet";

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::wordnet
