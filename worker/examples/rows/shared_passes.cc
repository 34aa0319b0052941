// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/rows/shared_passes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "proto/table.pb.h"
#include "worker/data_source.h"

namespace covey::examples {
namespace {

using worker::DataSource;
using worker::HybridStep;

// "209,472".
std::string WithCommas(double number) {
  std::string digits = absl::StrFormat("%.0f", number);
  for (size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

}  // namespace

std::string DescribePass(const PassReport& report, uint64_t passes, absl::string_view examples) {
  const double seconds = absl::ToDoubleSeconds(report.duration);
  const auto count = static_cast<double>(report.examples);
  return absl::StrFormat("pass %d of %d: loss %.4f, %s %s in %.1f s, %s per second", report.pass,
                         passes, report.loss, WithCommas(count), examples, seconds,
                         WithCommas(count / std::max(seconds, 1e-3)));
}

absl::StatusOr<std::unique_ptr<SharedPasses>> SharedPasses::Open(worker::Worker& worker,
                                                                 client::ParameterClient& client,
                                                                 absl::string_view name,
                                                                 Surroundings surroundings) {
  const proto::TableSpec spec = TallySpec(absl::StrCat(name, "/loss"), 2);
  COVEY_ASSIGN_OR_RETURN(Tally losses, Tally::Open(client, spec));
  auto passes = std::unique_ptr<SharedPasses>(
      new SharedPasses(worker, std::move(losses), std::move(surroundings)));
  std::vector<HybridStep::Tensor> tensors;
  tensors.push_back({.table = spec, .values = passes->values_, .gradient = passes->gradient_});
  COVEY_ASSIGN_OR_RETURN(passes->hybrid_, HybridStep::Create(worker, std::move(tensors)));
  return passes;
}

absl::Status SharedPasses::Train(const Data& data, const Step& step,
                                 const std::function<void(const PassReport&)>& pass_over) {
  return Run(data, Kind::kTraining, step, pass_over);
}

absl::Status SharedPasses::Visit(
    const Data& data, const std::function<absl::Status(std::span<const uint32_t>)>& visit) {
  return Run(
      data, Kind::kVisit,
      [&visit](std::span<const uint32_t> examples) -> absl::StatusOr<double> {
        COVEY_RETURN_IF_ERROR(visit(examples));
        return 0;
      },
      [](const PassReport&) {});
}

absl::Status SharedPasses::Run(const Data& data, Kind kind, const Step& step,
                               const std::function<void(const PassReport&)>& pass_over) {
  COVEY_ASSIGN_OR_RETURN(
      const auto source,
      DataSource::Open(worker_, {.name = data.name,
                                 .examples = data.examples,
                                 .item_examples = std::min(data.batch, data.examples),
                                 .passes = data.passes,
                                 .seed = data.seed,
                                 .at_pass_end = DataSource::AtPassEnd::kMeet}));
  for (bool goes_on = true; goes_on;) {
    COVEY_ASSIGN_OR_RETURN(const std::vector<double> before, losses_.Read());
    const absl::Time start = surroundings_.now();
    for (;;) {
      COVEY_RETURN_IF_ERROR(surroundings_.may_go_on());
      // A released worker is in no group; its next step reports that.
      worker_.group().Refresh().IgnoreError();
      std::span<const uint32_t> examples;
      {
        const HybridStep::InputTime input(*hybrid_);
        COVEY_ASSIGN_OR_RETURN(const uint64_t wanted,
                               hybrid_->SamplesFor(data.batch * worker_.group().size()));
        COVEY_ASSIGN_OR_RETURN(examples, source->Take(wanted));
      }
      if (source->done()) {
        COVEY_ASSIGN_OR_RETURN(const bool is_over, source->MeetAtEnd(*hybrid_));
        if (is_over) break;
      }
      COVEY_ASSIGN_OR_RETURN(const double loss, step(examples));
      COVEY_RETURN_IF_ERROR(hybrid_->Wait(0));
      gradient_ = {-static_cast<float>(loss), -1};
      const bool counts = kind == Kind::kTraining && !examples.empty();
      COVEY_RETURN_IF_ERROR(hybrid_->Begin(counts ? examples.size() : 0));
      COVEY_RETURN_IF_ERROR(hybrid_->Submit(0));
      hybrid_->Report(counts ? std::optional<double>(loss) : std::nullopt);
      // The pushes of all batches have been applied, except this one's.
      source->Finish(1);
    }
    COVEY_ASSIGN_OR_RETURN(const std::vector<double> after, losses_.Read());
    const double steps = after[1] - before[1];
    pass_over({.pass = source->pass() + 1,
               .examples = data.examples,
               .duration = surroundings_.now() - start,
               .loss = steps > 0 ? (after[0] - before[0]) / steps : 0});
    COVEY_ASSIGN_OR_RETURN(goes_on, source->NextPass());
  }
  return absl::OkStatus();
}

}  // namespace covey::examples
