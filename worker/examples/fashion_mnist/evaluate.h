// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "worker/examples/fashion_mnist/dataset.h"
#include "worker/examples/fashion_mnist/model.h"

namespace covey::fashion_mnist {

// How well a model does on some samples; 0 for none.
struct Quality {
  double accuracy = 0;  // Share of the samples that it puts in the right class.
  double loss = 0;      // Mean.
};

// Of `model`, with the values it holds now, on the first `samples_max` samples of `dataset`.
// Replaces what the model remembers of its last batch, so call it between steps.
Quality Evaluate(Perceptron<float>& model, const Dataset& dataset,
                 size_t samples_max = static_cast<size_t>(-1));

}  // namespace covey::fashion_mnist
