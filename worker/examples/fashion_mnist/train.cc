#include "worker/examples/fashion_mnist/train.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/examples/fashion_mnist/evaluate.h"
#include "worker/examples/fashion_mnist/model.h"
#include "worker/examples/fashion_mnist/sample_order.h"
#include "worker/hybrid_step.h"

namespace covey::fashion_mnist {
namespace {

using worker::HybridStep;
using worker::Worker;

constexpr absl::Duration kProgressInterval = absl::Seconds(1);
// Groups may be apart by as much as their speeds differ.
constexpr absl::Duration kLastWorkerMax = absl::Minutes(30);
// The rate rises over this share of all samples.
constexpr uint64_t kWarmupShare = 20;

// Everything about a table depends on the options only, so that all workers ask for the same one.
proto::TableSpec TableOf(const Tensor<float>& tensor, const Options& options, uint64_t seed,
                         uint64_t total_samples) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("fashion_mnist/", tensor.name));
  spec.set_data_type(proto::FLOAT32);
  for (const int64_t extent : tensor.shape) spec.add_shape(static_cast<uint64_t>(extent));
  if (tensor.initial_bound > 0) {
    proto::Initializer& initializer = *spec.mutable_initializer();
    initializer.set_kind(proto::Initializer::UNIFORM);
    initializer.set_a(static_cast<float>(-tensor.initial_bound));
    initializer.set_b(static_cast<float>(tensor.initial_bound));
    initializer.set_seed(seed);
  }
  spec.mutable_optimizer()->set_kind(proto::Optimizer::NESTEROV);
  spec.mutable_optimizer()->set_momentum(options.momentum);
  proto::LearningRate& rate = *spec.mutable_learning_rate();
  rate.set_base(options.learning_rate);
  rate.set_warmup_samples(total_samples / kWarmupShare);
  rate.set_decay(proto::LearningRate::COSINE);
  rate.set_decay_samples(total_samples);
  *spec.mutable_contract() = ContractToProto(options.contract);
  return spec;
}

std::vector<HybridStep::Tensor> TensorsOf(const Perceptron<float>& model, const Options& options,
                                          uint64_t total_samples) {
  std::vector<HybridStep::Tensor> tensors;
  for (const Tensor<float>& tensor : model.tensors()) {
    tensors.push_back(
        {.table = TableOf(tensor, options, options.seed + tensors.size(), total_samples),
         .values = tensor.value,
         .gradient = tensor.gradient});
  }
  return tensors;
}

std::string ProgressLine(const Worker& worker, const worker::Progress& progress) {
  const nlohmann::ordered_json json = {{"group", worker.group().id().value()},
                                       {"rank", worker.rank()},
                                       {"step", progress.step},
                                       {"samples", progress.samples},
                                       {"loss", progress.loss},
                                       {"samples_per_second", progress.samples_per_second},
                                       {"staleness", progress.staleness}};
  return absl::StrCat("progress ", json.dump());
}

}  // namespace

absl::StatusOr<Outcome> Train(Worker& worker, const Options& options,
                              const Surroundings& surroundings) {
  COVEY_ASSIGN_OR_RETURN(const Dataset training, Dataset::Load(options.data_dir, Split::kTrain));
  COVEY_ASSIGN_OR_RETURN(const Dataset test, Dataset::Load(options.data_dir, Split::kTest));
  const uint64_t total_samples = options.epochs * training.size();
  Perceptron<float> model({.inputs = kImagePixels,
                           .hidden = options.hidden,
                           .classes = kClasses,
                           .batch_size_max = options.batch});
  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<HybridStep> hybrid,
                         HybridStep::Create(worker, TensorsOf(model, options, total_samples)));

  SampleOrder order({.sample_count = training.size(),
                     .batch_size = options.batch,
                     .rank = worker.rank(),
                     .world_size = worker.size(),
                     .seed = options.seed});
  std::vector<float> images(options.batch * kImagePixels);
  std::vector<uint8_t> labels(options.batch);
  const absl::Time start = surroundings.now();
  absl::Time next_progress = start + kProgressInterval;
  for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    order.StartEpoch(epoch);
    for (size_t step = 0; step < order.steps_per_epoch(); ++step) {
      COVEY_RETURN_IF_ERROR(surroundings.may_go_on());
      const std::span<const uint32_t> batch = order.Batch(step);
      const auto batch_images = std::span(images).first(batch.size() * kImagePixels);
      const auto batch_labels = std::span(labels).first(batch.size());
      training.CopyBatch(batch, batch_images, batch_labels);
      COVEY_ASSIGN_OR_RETURN(
          const auto outcome,
          model.Forward(batch_images, batch_labels, [&](size_t t) { return hybrid->Wait(t); }));
      COVEY_RETURN_IF_ERROR(hybrid->Begin(batch.size()));
      COVEY_RETURN_IF_ERROR(model.Backward([&](size_t t) { return hybrid->Submit(t); }));
      hybrid->Report(outcome.loss);
      if (worker.group().rank() == 0 && surroundings.now() >= next_progress) {
        next_progress += kProgressInterval;
        COVEY_ASSIGN_OR_RETURN(const worker::Progress progress, hybrid->progress());
        surroundings.print(ProgressLine(worker, progress));
      }
    }
  }
  COVEY_RETURN_IF_ERROR(hybrid->Finish());
  COVEY_RETURN_IF_ERROR(worker.Barrier("fashion_mnist/trained", kLastWorkerMax));
  Outcome outcome{.samples = total_samples, .duration = surroundings.now() - start};
  // What the other groups pushed last counts too.
  COVEY_RETURN_IF_ERROR(hybrid->Refresh());
  if (worker.rank() == 0) outcome.test_accuracy = Accuracy(model, test);
  return outcome;
}

}  // namespace covey::fashion_mnist
