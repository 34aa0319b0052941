// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/train.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/parameter_client.h"
#include "common/base/status_macros.h"
#include "common/tensor/wire_format_proto.h"
#include "worker/batch_growth.h"
#include "worker/data_source.h"
#include "worker/examples/client_beside_worker.h"
#include "worker/examples/fashion_mnist/evaluate.h"
#include "worker/examples/fashion_mnist/model.h"
#include "worker/examples/fashion_mnist/sample_order.h"
#include "worker/examples/rows/tally.h"
#include "worker/hybrid_step.h"

namespace covey::fashion_mnist {
namespace {

using examples::Tally;
using worker::DataSource;
using worker::HybridStep;
using worker::Worker;

constexpr absl::Duration kProgressInterval = absl::Seconds(1);
// Groups may differ in time by as much as in speed.
constexpr absl::Duration kLastWorkerMax = absl::Minutes(30);
// The rate rises over 1 / kWarmupShare of all samples.
constexpr uint64_t kWarmupShare = 20;
// Batch size of evaluations.
constexpr uint64_t kEvaluationBatch = 256;

// A table's definition depends only on the options and the job, so that all workers request the
// same one. `schedule_samples`: the length of the learning rate's schedule.
proto::TableSpec TableOf(const Tensor<float>& tensor, const Options& options, uint64_t seed,
                         uint64_t schedule_samples) {
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
  const bool is_local = options.contract.kind == Contract::Kind::kLocal;
  proto::Optimizer& optimizer =
      is_local ? *spec.mutable_inner_optimizer() : *spec.mutable_optimizer();
  optimizer.set_kind(proto::Optimizer::NESTEROV);
  optimizer.set_momentum(options.momentum);
  proto::LearningRate& rate =
      is_local ? *spec.mutable_inner_learning_rate() : *spec.mutable_learning_rate();
  rate.set_base(options.learning_rate / options.loss_scale);
  rate.set_warmup_samples(schedule_samples / kWarmupShare);
  rate.set_decay(proto::LearningRate::COSINE);
  rate.set_decay_samples(schedule_samples);
  if (is_local) {
    proto::Optimizer& outer = *spec.mutable_optimizer();
    outer.set_kind(options.outer_momentum > 0 ? proto::Optimizer::NESTEROV : proto::Optimizer::SGD);
    outer.set_momentum(options.outer_momentum);
    spec.mutable_learning_rate()->set_base(options.outer_learning_rate);
  }
  *spec.mutable_contract() = ContractToProto(options.contract);
  spec.mutable_asynchrony()->set_automatic_momentum(options.contract.AppliesOnArrival() &&
                                                    options.automatic_momentum);
  spec.set_gradient_format(ToProto(options.wire));
  spec.set_value_format(ToProto(options.value_wire));
  return spec;
}

std::vector<HybridStep::Tensor> TensorsOf(const Perceptron<float>& model, const Options& options,
                                          uint64_t schedule_samples) {
  std::vector<HybridStep::Tensor> tensors;
  for (const Tensor<float>& tensor : model.tensors()) {
    tensors.push_back(
        {.table = TableOf(tensor, options, options.seed + tensors.size(), schedule_samples),
         .values = tensor.value,
         .gradient = tensor.gradient});
  }
  return tensors;
}

// The length of the learning rate's schedule, in samples. Servers count the samples of the whole
// run. Under local:H a group counts its own, so the schedule spans a group's part of the run if all
// groups are equally fast. A faster group takes its last steps at the final rate, 0, as all do
// after the death of a group; a slower group ends at a higher rate.
uint64_t ScheduleSamples(const Options& options, uint64_t total_samples, uint32_t groups) {
  return options.contract.kind == Contract::Kind::kLocal ? total_samples / groups : total_samples;
}

worker::HybridOptions HybridOptionsOf(const Options& options) {
  return {.synchronization = options.update_on_members ? worker::Synchronization::kDistributed
                                                       : worker::Synchronization::kCentralized,
          .lag = options.lag,
          .combine = options.adasum ? worker::Combine::kAdasum : worker::Combine::kMean,
          .measure_noise = options.measures_noise(),
          .autotune = options.autotune};
}

// The training of one worker, from start to end.
class Training {
 public:
  // `target_reached`: null without a target accuracy.
  Training(Worker& worker, const Options& options, const Surroundings& surroundings,
           const Dataset& training, const Dataset& test, Tally* target_reached)
      : worker_(worker),
        options_(options),
        surroundings_(surroundings),
        training_(training),
        test_(test),
        target_reached_(target_reached),
        total_samples_(options.epochs * training.size()),
        batch_max_(options.batch * options.grow_batch * worker.group().size()),
        growth_({.member_batch = options.batch, .multiple_max = options.grow_batch}),
        model_({.inputs = kImagePixels,
                .hidden = options.hidden,
                .classes = kClasses,
                .batch_size_max = std::max(batch_max_, kEvaluationBatch),
                .loss_scale = options.loss_scale}),
        order_({.sample_count = training.size(),
                .batch_size = options.batch,
                .rank = worker.rank(),
                .world_size = worker.size(),
                .seed = options.seed}),
        images_(batch_max_ * kImagePixels),
        labels_(batch_max_) {}

  absl::StatusOr<Outcome> Run() {
    const uint64_t schedule_samples =
        ScheduleSamples(options_, total_samples_, worker_.initial_groups());
    COVEY_ASSIGN_OR_RETURN(
        hybrid_, HybridStep::Create(worker_, TensorsOf(model_, options_, schedule_samples),
                                    HybridOptionsOf(options_)));
    start_ = surroundings_.now();
    next_progress_ = start_ + kProgressInterval;
    COVEY_RETURN_IF_ERROR(options_.has_fixed_split() ? TakeFixedSteps() : TakeSharedSteps());
    outcome_.samples = samples_;
    outcome_.duration = surroundings_.now() - start_;
    COVEY_ASSIGN_OR_RETURN(const worker::Progress progress, hybrid_->progress());
    outcome_.step_times = progress.step_times;
    outcome_.noise = growth_.noise();
    outcome_.batch = GroupBatch();
    outcome_.steps = progress.step;
    // Includes the last pushes of the other groups.
    COVEY_RETURN_IF_ERROR(hybrid_->Refresh());
    // One worker of each group, because the others may be lost.
    outcome_.is_speaker =
        options_.has_fixed_split() ? worker_.rank() == 0 : worker_.group().rank() == 0;
    if (outcome_.is_speaker) {
      outcome_.test = Evaluate(model_, test_);
      outcome_.training = Evaluate(model_, training_, test_.size());
    }
    return outcome_;
  }

 private:
  // Trains until all passes are finished, by all workers together.
  absl::Status TakeSharedSteps() {
    COVEY_ASSIGN_OR_RETURN(source_, DataSource::Open(worker_, {.name = "fashion_mnist",
                                                               .examples = training_.size(),
                                                               .item_examples = options_.batch,
                                                               .passes = options_.epochs,
                                                               .seed = options_.seed}));
    for (;;) {
      COVEY_RETURN_IF_ERROR(surroundings_.may_go_on());
      // A released worker is in no group; its next step reports that.
      worker_.group().Refresh().IgnoreError();
      COVEY_ASSIGN_OR_RETURN(const auto batch, TakeBatch());
      samples_ = source_->examples_finished();
      if (source_->done()) {
        COVEY_ASSIGN_OR_RETURN(const bool is_over, source_->MeetAtEnd(*hybrid_));
        if (is_over) break;
      }
      COVEY_RETURN_IF_ERROR(Step(batch));
      // The values of all steps have arrived except this one's and, with lag, the previous one's.
      source_->Finish(1 + options_.lag);
    }
    return hybrid_->Finish();
  }

  uint64_t GroupBatch() const {
    return growth_.multiple() * options_.batch * worker_.group().size();
  }

  absl::StatusOr<std::span<const uint32_t>> TakeBatch() {
    const HybridStep::InputTime input(*hybrid_);
    COVEY_ASSIGN_OR_RETURN(const uint64_t samples, hybrid_->SamplesFor(GroupBatch()));
    return source_->Take(std::min(samples, batch_max_));
  }

  absl::Status TakeFixedSteps() {
    COVEY_RETURN_IF_ERROR(WalkThroughFixedSplit());
    COVEY_RETURN_IF_ERROR(hybrid_->Finish());
    return worker_.Barrier("fashion_mnist/trained", kLastWorkerMax);
  }

  absl::Status WalkThroughFixedSplit() {
    const size_t steps_per_epoch = order_.steps_per_epoch();
    uint64_t shuffled = 0;  // the epoch of order_
    for (;;) {
      // As counted by the group, which may have continued without this worker.
      COVEY_ASSIGN_OR_RETURN(const uint64_t step, hybrid_->step());
      const uint64_t epoch = step / steps_per_epoch;
      if (epoch >= options_.epochs) return absl::OkStatus();
      if (epoch != shuffled) order_.StartEpoch(shuffled = epoch);
      COVEY_RETURN_IF_ERROR(surroundings_.may_go_on());
      COVEY_RETURN_IF_ERROR(Step(order_.Batch(step % steps_per_epoch)));
      samples_ = epoch * training_.size() +
                 std::min((step % steps_per_epoch + 1) * options_.batch * worker_.size(),
                          training_.size());
      COVEY_RETURN_IF_ERROR(LookAtTarget());
      if (options_.stop_at_target && outcome_.target.has_value()) {
        return absl::OkStatus();
      }
    }
  }

  absl::Status Step(std::span<const uint32_t> batch) {
    const auto images = std::span(images_).first(batch.size() * kImagePixels);
    const auto labels = std::span(labels_).first(batch.size());
    {
      const HybridStep::InputTime input(*hybrid_);
      training_.CopyBatch(batch, images, labels);
    }
    COVEY_ASSIGN_OR_RETURN(const auto outcome, model_.Forward(images, labels, [&](size_t t) {
      return hybrid_->Wait(t);
    }));
    COVEY_RETURN_IF_ERROR(FollowNoise());
    COVEY_RETURN_IF_ERROR(hybrid_->Begin(batch.size()));
    COVEY_RETURN_IF_ERROR(model_.Backward([&](size_t t) { return hybrid_->Submit(t); }));
    hybrid_->Report(batch.empty() ? std::nullopt : std::optional<double>(outcome.loss));
    if (worker_.group().rank() != 0 || surroundings_.now() < next_progress_) {
      return absl::OkStatus();
    }
    next_progress_ += kProgressInterval;
    COVEY_ASSIGN_OR_RETURN(const worker::Progress progress, hybrid_->progress());
    surroundings_.print(ProgressLine(progress));
    return absl::OkStatus();
  }

  // All tensors have the values of the step before: its noise says what batch and rate come next.
  absl::Status FollowNoise() {
    if (!options_.measures_noise()) return absl::OkStatus();
    COVEY_ASSIGN_OR_RETURN(const std::vector<worker::GradientNorms> norms,
                           hybrid_->TakeGradientNorms());
    for (const worker::GradientNorms& of_step : norms) growth_.Add(of_step);
    if (options_.scale_rate == 0 || norms.empty()) return absl::OkStatus();
    const std::optional<worker::GradientNoise> noise = growth_.noise();
    const double gain = noise ? noise->RateGain(options_.scale_rate, norms.back().samples) : 1;
    for (size_t t = 0; t < model_.tensors().size(); ++t) {
      COVEY_RETURN_IF_ERROR(hybrid_->SetRateFactor(t, gain));
    }
    return absl::OkStatus();
  }

  std::string ProgressLine(const worker::Progress& progress) const {
    nlohmann::ordered_json json = {{"group", worker_.group().id().value()},
                                   {"rank", worker_.rank()},
                                   {"step", progress.step},
                                   {"samples", progress.samples},
                                   {"loss", progress.loss},
                                   {"samples_per_second", progress.samples_per_second},
                                   {"staleness", progress.staleness}};
    if (const std::optional<worker::GradientNoise> noise = growth_.noise()) {
      json["noise_scale"] = noise->scale();
      json["batch"] = GroupBatch();
    }
    return absl::StrCat("progress ", json.dump());
  }

  // One worker evaluates and tells the others, because the values of workers may differ: under
  // local each has its own, and an update that is applied meanwhile is seen by some.
  absl::Status LookAtTarget() {
    if (target_reached_ == nullptr || outcome_.target.has_value() ||
        samples_ / options_.evaluate_every == looked_at_ / options_.evaluate_every) {
      return absl::OkStatus();
    }
    looked_at_ = samples_;
    COVEY_RETURN_IF_ERROR(hybrid_->Finish());
    COVEY_RETURN_IF_ERROR(worker_.Barrier("fashion_mnist/look", kLastWorkerMax));
    COVEY_RETURN_IF_ERROR(hybrid_->Refresh());
    if (worker_.rank() == 0 && Evaluate(model_, test_).accuracy >= options_.target_accuracy) {
      COVEY_RETURN_IF_ERROR(target_reached_->Add({{1.0}}));
    }
    COVEY_RETURN_IF_ERROR(worker_.Barrier("fashion_mnist/seen", kLastWorkerMax));
    COVEY_ASSIGN_OR_RETURN(const std::vector<double> reached, target_reached_->Read());
    if (reached.front() > 0) {
      outcome_.target = {.samples = samples_, .duration = surroundings_.now() - start_};
    }
    return absl::OkStatus();
  }

  // Constant after construction.
  Worker& worker_;
  const Options& options_;
  const Surroundings& surroundings_;
  const Dataset& training_;
  const Dataset& test_;
  Tally* const target_reached_;  // one sum, which is 0 until the target is reached
  const uint64_t total_samples_;

  // The most samples of one step of this worker; more than its even share where others are slow.
  const uint64_t batch_max_;
  worker::BatchGrowth growth_;
  Perceptron<float> model_;
  SampleOrder order_;
  std::vector<float> images_;
  std::vector<uint8_t> labels_;
  std::unique_ptr<HybridStep> hybrid_;
  std::unique_ptr<DataSource> source_;  // unless the split is fixed
  // Of the whole run, over all workers, if all have progressed as far as this one.
  uint64_t samples_ = 0;
  uint64_t looked_at_ = 0;
  absl::Time start_;
  absl::Time next_progress_;
  Outcome outcome_;
};

}  // namespace

absl::StatusOr<Outcome> Train(Worker& worker, const worker::WorkerConfig& config,
                              const Options& options, const Surroundings& surroundings) {
  COVEY_ASSIGN_OR_RETURN(const Dataset training, Dataset::Load(options.data_dir, Split::kTrain));
  COVEY_ASSIGN_OR_RETURN(const Dataset test, Dataset::Load(options.data_dir, Split::kTest));
  if (options.target_accuracy <= 0) {
    return Training(worker, options, surroundings, training, test, nullptr).Run();
  }
  COVEY_ASSIGN_OR_RETURN(const auto client, examples::ConnectBesideWorker(config));
  // A run that goes on from a snapshot may have another target than the one before.
  const std::string name = absl::StrCat("fashion_mnist/target_reached/", options.target_accuracy);
  COVEY_ASSIGN_OR_RETURN(Tally reached, Tally::Open(*client, examples::TallySpec(name, 1)));
  return Training(worker, options, surroundings, training, test, &reached).Run();
}

}  // namespace covey::fashion_mnist
