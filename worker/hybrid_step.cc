// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid_step.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/optimizer/learning_rate.h"
#include "worker/engine/worker_core.h"
#include "worker/hybrid/noise_meter.h"
#include "worker/hybrid/step_spans.h"
#include "worker/hybrid/step_timer.h"
#include "worker/layout/sample_shares.h"

namespace covey::worker {
namespace {

// If the plan is not this generation's: none, which means even shares.
std::vector<uint32_t> SharesOf(const ClusterView& view, const Communicator& communicator) {
  const proto::Group* group = view.FindGroup(communicator.id());
  if (group == nullptr || group->generation() != communicator.generation()) return {};
  if (static_cast<uint32_t>(group->shares_size()) != communicator.size()) return {};
  return {group->shares().begin(), group->shares().end()};
}

absl::Status CheckRateFactor(absl::string_view table, double factor) {
  if (IsRateFactor(factor)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the learning rate's factor of tensor '", table,
                                                 "' is ", factor, "; use at least 0, and at most ",
                                                 kRateFactorMax));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HybridStep>> HybridStep::Create(Worker& worker,
                                                               std::vector<Tensor> tensors,
                                                               const Options& options) {
  if (options.lag > 1) {
    return absl::InvalidArgumentError(absl::StrCat("lag is ", options.lag, "; choose 0 or 1"));
  }
  if (options.lag > 0 && options.synchronization == Synchronization::kProgram) {
    return absl::InvalidArgumentError(
        "lag is 1, and the program updates, which would get each mean gradient a step late; choose "
        "0. To hide the communication behind a step, wait for a step after computing the next one");
  }
  if (const double norm = options.max_gradient_norm;
      norm != 0 && !(norm >= kGradientNormMin && std::isfinite(norm))) {
    return absl::InvalidArgumentError(absl::StrCat("max_gradient_norm is ", norm, "; choose ",
                                                   kGradientNormMin,
                                                   " or more, or 0 for no clipping"));
  }
  if (options.measure_noise && options.combine == Combine::kAdasum) {
    return absl::InvalidArgumentError(
        "measure_noise is on, and the gradients are combined by Adasum, which takes no mean to "
        "measure the noise by; choose one of them");
  }
  for (const Tensor& tensor : tensors) {
    if (!tensor.table.has_sparse()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("table '", tensor.table.name(), "' is sparse, and a step takes dense ones; ",
                     "pull and push its rows by a client::ParameterClient, or under local:H by "
                     "LocalRows"));
  }
  for (const Tensor& tensor : tensors) {
    COVEY_RETURN_IF_ERROR(CheckRateFactor(tensor.table.name(), tensor.rate_factor));
  }
  auto hybrid =
      std::unique_ptr<HybridStep>(new HybridStep(worker.core(), options, std::move(tensors)));
  COVEY_RETURN_IF_ERROR(hybrid->CreateTables());
  COVEY_RETURN_IF_ERROR(hybrid->PullAll());
  return hybrid;
}

HybridStep::HybridStep(WorkerCore& core, const Options& options, std::vector<Tensor> tensors)
    : core_(core),
      options_(options),
      timer_(std::make_unique<StepTimer>(tensors.size(), core.away())),
      spans_(std::make_unique<StepSpans>(core.connection().program_trace())) {
  for (Tensor& tensor : tensors) states_.push_back({.tensor = std::move(tensor)});
}

absl::Status HybridStep::CreateTables() {
  std::vector<TableId> tables;
  std::vector<client::NamedValues> given;
  for (const State& state : states_) {
    proto::Envelope request;
    *request.mutable_create_table_request()->mutable_spec() = state.tensor.table;
    COVEY_ASSIGN_OR_RETURN(
        const proto::Envelope reply,
        core_.connection().Request(request, core_.config().cluster.operation_deadline));
    tables.push_back(TableId(reply.create_table_reply().table()));
    if (state.tensor.table.initializer().kind() == proto::Initializer::GIVEN) {
      given.push_back({.table = state.tensor.table.name(), .values = state.tensor.values});
    }
  }
  if (!given.empty()) {
    COVEY_RETURN_IF_ERROR(
        core_.connection()
            .InitializeTables(std::move(given), core_.config().cluster.operation_deadline)
            .status());
  }
  // The reply's view has the table, and the loop has adopted the view.
  return core_.RunWhenReady([&](WorkerActor& actor) {
    HybridStepEngine& engine = actor.hybrid();
    absl::Status fits =
        engine.SetTables(tables, options_, core_.config().cluster.operation_deadline);
    for (size_t i = 0; i < states_.size() && fits.ok(); ++i) {
      const Tensor& tensor = states_[i].tensor;
      const auto fits_table = [elements = engine.element_count(i)](size_t size) {
        return size == elements;
      };
      if (fits_table(tensor.values.size()) &&
          (tensor.gradient.empty() || fits_table(tensor.gradient.size()))) {
        continue;
      }
      fits = absl::InvalidArgumentError(absl::StrCat(
          "table '", tensor.table.name(), "' has ", engine.element_count(i), " elements; got ",
          tensor.values.size(), " values and ", tensor.gradient.size(),
          " gradient elements; pass spans of the table's size"));
    }
    return fits;
  });
}

HybridStep::~HybridStep() { WaitForAll().IgnoreError(); }

absl::Status HybridStep::Begin(uint64_t samples) {
  for (State& state : states_) {
    if (!state.submitted) {
      return absl::InvalidArgumentError(
          absl::StrCat("a new step begins before tensor '", state.tensor.table.name(),
                       "' was submitted; submit every tensor in every step"));
    }
  }
  for (State& state : states_) state.submitted = false;
  samples_ = samples;
  core_.steps().Begin();
  spans_->Begin(MonotonicNow(), core_.steps().begun());
  return core_.Post([](WorkerActor& actor, absl::Time now, Outbox& outbox) {
    actor.hybrid().BeginStep(now, outbox);
  });
}

absl::Status HybridStep::Submit(size_t tensor) {
  return Submit(
      tensor, tensor < states_.size() ? states_[tensor].tensor.gradient : std::span<const float>());
}

absl::Status HybridStep::Submit(size_t tensor, std::span<const float> gradient) {
  if (tensor >= states_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("submit of tensor ", tensor, "; the model has ", states_.size()));
  }
  State& state = states_[tensor];
  if (gradient.size() != state.tensor.values.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("submit of tensor '", state.tensor.table.name(), "': its gradient has ",
                     gradient.size(), " elements; the table has ", state.tensor.values.size()));
  }
  if (state.submitted || state.under_way) {
    return absl::InvalidArgumentError(
        absl::StrCat("submit of tensor '", state.tensor.table.name(), "': it was ",
                     state.submitted ? "submitted in this step before; begin the next step"
                                     : "not waited for since the last step; wait for it"));
  }
  core_.SetBack().IgnoreError();  // Else the next tensor's submission says it.
  state.submitted = true;
  state.own_step = core_.steps().begun();
  Start(tensor, Way::kSubmit, gradient);
  return absl::OkStatus();
}

absl::Status HybridStep::SetRateFactor(size_t tensor, double factor) {
  if (tensor >= states_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rate factor of tensor ", tensor, "; the model has ", states_.size()));
  }
  COVEY_RETURN_IF_ERROR(CheckRateFactor(states_[tensor].tensor.table.name(), factor));
  states_[tensor].tensor.rate_factor = factor;
  return absl::OkStatus();
}

void HybridStep::Start(size_t tensor, Way way, std::span<const float> gradient) {
  State& state = states_[tensor];
  state.handle = Handle(core_.runner());
  state.under_way = true;
  TensorRequest request{.tensor = tensor,
                        .gradient = gradient,
                        .values = state.tensor.values,
                        .samples = samples_,
                        .rate_factor = state.tensor.rate_factor,
                        .server_times = &timer_->server_times(tensor),
                        .step = way == Way::kSubmit ? &state.step : nullptr,
                        .mean_samples = &state.mean_samples};
  request.done = [handle = state.handle](absl::Time, const absl::Status& status, Outbox&) {
    handle.Complete({.status = status});
  };
  if (ThreadTrace& trace = core_.connection().program_trace(); trace.on()) {
    request.done = [done = std::move(request.done), &trace, name = state.tensor.table.name(),
                    begin = MonotonicNow(), step = core_.steps().begun()](
                       absl::Time now, const absl::Status& status, Outbox& outbox) {
      trace.Add(proto::TracedSpan::OPERATION, name, begin, MonotonicNow(), step);
      done(now, status, outbox);
    };
  }
  const absl::Status posted = core_.PostBeforeWaiting(
      [request = std::move(request), way, patience = core_.config().cluster.operation_deadline](
          WorkerActor& actor, absl::Time now, Outbox& outbox) mutable {
        request.deadline = now + patience;
        HybridStepEngine& engine = actor.hybrid();
        switch (way) {
          case Way::kSubmit:
            return engine.Submit(now, std::move(request), outbox);
          case Way::kPull:
            return engine.Pull(now, std::move(request), outbox);
          case Way::kFlush:
            return engine.Flush(now, std::move(request), outbox);
        }
      });
  if (!posted.ok()) state.handle.Complete({.status = posted});
}

absl::Status HybridStep::Wait(size_t tensor) { return WaitFor(tensor, absl::InfiniteDuration()); }

absl::Status HybridStep::WaitFor(size_t tensor, absl::Duration timeout) {
  if (tensor >= states_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait for tensor ", tensor, "; the model has ", states_.size()));
  }
  State& state = states_[tensor];
  absl::Status status;
  if (state.handle.done()) {
    status = state.handle.Wait();
  } else {
    const absl::Time begin = MonotonicNow();
    status = state.handle.WaitFor(timeout);
    const absl::Time end = MonotonicNow();
    timer_->Waited(tensor, begin, end);
    spans_->Waited(state.tensor.table.name(), begin, end);
  }
  if (!state.handle.done()) return status;
  state.under_way = false;
  const uint64_t own_step = std::exchange(state.own_step, 0);
  if (own_step > 0 && status.ok()) core_.steps().Set(own_step, state.step);
  return status;
}

bool HybridStep::in_flight(size_t tensor) const {
  return tensor < states_.size() && states_[tensor].under_way && !states_[tensor].handle.done();
}

absl::Status HybridStep::WaitForAll() {
  absl::Status first;
  for (size_t i = 0; i < states_.size(); ++i) first.Update(Wait(i));
  return first;
}

absl::Status HybridStep::Finish() {
  COVEY_RETURN_IF_ERROR(WaitForAll());
  if (options_.lag == 0) return absl::OkStatus();
  for (size_t i = 0; i < states_.size(); ++i) Start(i, Way::kFlush);
  return WaitForAll();
}

absl::Status HybridStep::Refresh() {
  if (options_.synchronization == Synchronization::kProgram) {
    return absl::InvalidArgumentError(
        "refresh of a model that the program updates: the newest values are the program's own, and "
        "the servers have those it began with");
  }
  COVEY_RETURN_IF_ERROR(Finish());
  return PullAll();
}

absl::Status HybridStep::PullAll() {
  for (size_t i = 0; i < states_.size(); ++i) Start(i, Way::kPull);
  return WaitForAll();
}

absl::StatusOr<uint64_t> HybridStep::SamplesFor(uint64_t group_batch) const {
  uint64_t samples = 0;
  COVEY_RETURN_IF_ERROR(core_.Run([&](WorkerActor& actor, absl::Time, Outbox&) {
    const Communicator& group = actor.group();
    if (!group.formed()) return;
    actor.NoteFollowsShares();
    const ClusterView& view = *actor.client().member().view();
    samples = DivideSamples(group_batch, SharesOf(view, group), group.size())[group.rank()];
  }));
  return samples;
}

absl::StatusOr<std::optional<double>> HybridStep::gradient_norm() const {
  std::optional<double> norm;
  COVEY_RETURN_IF_ERROR(core_.Run([&](WorkerActor& actor, absl::Time, Outbox&) {
    norm = actor.hybrid().model().gradient_norm();
  }));
  return norm;
}

absl::StatusOr<std::vector<GradientNorms>> HybridStep::TakeGradientNorms() {
  if (!options_.measure_noise) {
    return absl::FailedPreconditionError(
        "the norms of the members' gradients are not taken; set measure_noise in the options");
  }
  const Handle known(core_.runner());
  const auto norms = std::make_shared<std::vector<GradientNorms>>();
  COVEY_RETURN_IF_ERROR(core_.Post([known, norms](WorkerActor& actor, absl::Time, Outbox&) {
    NoiseMeter& noise = *actor.hybrid().model().noise();
    noise.WhenKnown([known, norms, &noise] {
      *norms = noise.Take();
      known.Complete({});
    });
  }));
  COVEY_RETURN_IF_ERROR(known.Wait());
  return std::move(*norms);
}

uint64_t HybridStep::mean_samples(size_t tensor) const {
  return tensor < states_.size() ? states_[tensor].mean_samples : 0;
}

absl::StatusOr<uint64_t> HybridStep::step() const {
  uint64_t step = 0;
  COVEY_RETURN_IF_ERROR(core_.Run(
      [&](WorkerActor& actor, absl::Time, Outbox&) { step = actor.hybrid().step().value(); }));
  return step;
}

void HybridStep::Report(std::optional<double> loss) {
  const absl::Time now = MonotonicNow();
  StepReport report = timer_->Take(now);
  spans_->End(now);
  report.samples = loss.has_value() ? samples_ : 0;
  report.loss = loss;
  // A report is lost when the queue is full; the next one makes up for it.
  core_
      .Post(
          [report](WorkerActor& actor, absl::Time now, Outbox&) { actor.ReportStep(now, report); })
      .IgnoreError();
}

absl::StatusOr<Progress> HybridStep::progress() const {
  Progress progress;
  COVEY_RETURN_IF_ERROR(core_.Run(
      [&](WorkerActor& actor, absl::Time, Outbox&) { progress = actor.meter().progress(); }));
  return progress;
}

HybridStep::InputTime::InputTime(HybridStep& hybrid)
    : timer_(*hybrid.timer_), spans_(*hybrid.spans_) {
  const absl::Time now = MonotonicNow();
  timer_.BeginInput(now);
  spans_.BeginInput(now);
}

HybridStep::InputTime::~InputTime() {
  const absl::Time now = MonotonicNow();
  timer_.EndInput(now);
  spans_.EndInput(now);
}

}  // namespace covey::worker
