// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "worker/examples/fashion_mnist/dataset.h"
#include "worker/examples/fashion_mnist/model.h"

namespace covey::fashion_mnist {

// The quality of a model on some samples; 0 for none.
struct Quality {
  double accuracy = 0;  // The share of the samples that are classified correctly.
  double loss = 0;      // Mean.
};

// The quality of `model`, with its present values, on the first `samples_max` samples of `dataset`.
// Overwrites the model's state of its last batch, so call it between steps.
Quality Evaluate(Perceptron<float>& model, const Dataset& dataset,
                 size_t samples_max = static_cast<size_t>(-1));

}  // namespace covey::fashion_mnist
