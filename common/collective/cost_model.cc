// SPDX-License-Identifier: Apache-2.0
#include "common/collective/cost_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/collective/part_range.h"
#include "common/collective/sections.h"
#include "common/collective/traffic_meter.h"

namespace covey {
namespace {

std::vector<TrafficMeter::Trees> TreesOf(const Plan& plan, CollectiveKind kind, size_t bytes) {
  std::vector<TrafficMeter::Trees> all;
  for (const Section& section :
       SectionsOf(plan, kind, EvenParts(bytes, plan.size()), bytes, /*root=*/0)) {
    TrafficMeter::Trees trees{.owner = section.owner.value_or(0),
                              .stripe = section.stripe,
                              .bytes = static_cast<double>(section.range.count),
                              .reduces = HasReduction(kind),
                              .spreads = HasSpreading(kind) && section.owner.has_value(),
                              .copies = !section.owner.has_value()};
    all.push_back(trees);
    if (section.owner) continue;
    while (++trees.owner < plan.size()) all.push_back(trees);
  }
  return all;
}

}  // namespace

Prediction Predict(const Plan& plan, CollectiveKind kind, size_t bytes,
                   std::span<const TopologyPath> paths, const LinkCosts& costs) {
  COVEY_CHECK(paths.size() == plan.size());
  const std::vector<TrafficMeter::Trees> all = TreesOf(plan, kind, bytes);
  TrafficMeter meter(plan, paths, costs);
  const size_t wanted = std::max<size_t>(8, kEdgesMax / plan.size());
  const size_t count = std::min(all.size(), wanted);
  for (size_t i = 0; i < count; ++i) {
    TrafficMeter::Trees trees = all[i * all.size() / count];
    trees.weight = static_cast<double>(all.size()) / static_cast<double>(count);
    meter.Add(trees);
  }
  return meter.Finish();
}

AlgorithmChoice ChooseAlgorithm(CollectiveKind kind, size_t bytes,
                                std::span<const TopologyPath> paths, const LinkCosts& costs) {
  COVEY_CHECK(!paths.empty());
  AlgorithmChoice choice;
  for (const Algorithm algorithm : kAlgorithms) {
    const Plan plan({.algorithm = algorithm,
                     .size = static_cast<uint32_t>(paths.size()),
                     .paths = {paths.begin(), paths.end()}});
    Prediction prediction = Predict(plan, kind, bytes, paths, costs);
    choice.seconds.push_back(prediction.seconds);
    if (choice.seconds.size() > 1 && prediction.seconds >= choice.prediction.seconds) continue;
    choice.algorithm = algorithm;
    choice.prediction = std::move(prediction);
  }
  return choice;
}

std::string AlgorithmChoice::Explain() const {
  std::vector<std::string> others;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (kAlgorithms[i] == algorithm) continue;
    others.push_back(
        absl::StrFormat("%s %.3g ms", AlgorithmName(kAlgorithms[i]), seconds[i] * 1e3));
  }
  return absl::StrFormat("%s %.3g ms, %.3g ms of it at %s (%s)", AlgorithmName(algorithm),
                         prediction.seconds * 1e3, prediction.transfer_seconds * 1e3,
                         prediction.bottleneck, absl::StrJoin(others, ", "));
}

}  // namespace covey
