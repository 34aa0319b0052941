#pragma once

#include "worker/examples/fashion_mnist/dataset.h"
#include "worker/examples/fashion_mnist/model.h"

namespace covey::fashion_mnist {

// Share of the samples of `dataset` that `model`, with the values it holds now, puts in the right
// class. Replaces what the model remembers of its last batch, so call it between steps.
double Accuracy(Perceptron<float>& model, const Dataset& dataset);

}  // namespace covey::fashion_mnist
