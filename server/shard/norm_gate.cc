// SPDX-License-Identifier: Apache-2.0
#include "server/shard/norm_gate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/planted_bug.h"
#include "common/vectors/kernels.h"
#include "server/shard/push_checks.h"

namespace covey::server {
namespace {

float NormOf(std::span<const float> sum, uint64_t samples) {
  constexpr double kMax = std::numeric_limits<float>::max();
  const double norm = std::sqrt(Dot(sum, sum)) / static_cast<double>(samples);
  // Dot also overflows where each element is finite.
  if (!(norm < kMax)) return std::numeric_limits<float>::max();
  return static_cast<float>(norm);
}

bool IsQuarantined(const Producer& producer, const ClusterView& view) {
  const auto& quarantined = view.proto().quarantined();
  return std::any_of(quarantined.begin(), quarantined.end(),
                     [&](const proto::QuarantinedProducer& each) {
                       return each.id() == producer.id &&
                              each.is_group() == (producer.kind == Producer::Kind::kGroup);
                     });
}

// As PushHistory::UsualNorm of all but one producer; 0 = there are no others. `own`: the norm of
// that one, if it is in `usual`, which is in growing order.
float MedianOfOthers(const std::vector<float>& usual, std::optional<float> own) {
  const size_t others = usual.size() - (own ? 1 : 0);
  if (others == 0) return 0;
  size_t median = (others - 1) / 2;
  if (own && usual[median] >= *own) ++median;
  return usual[median];
}

}  // namespace

NormGate::Verdict NormGate::Judge(std::span<const float> sum, uint64_t samples,
                                  const Producer& producer, const PushHistory& history,
                                  const ClusterView& view) const {
  if (!rules_ || samples == 0) return {};
  Verdict verdict{.norm = NormOf(sum, samples), .is_applied = !IsQuarantined(producer, view)};
  const std::optional<float> usual =
      history.UsualNorm([&](const Producer& each) { return !IsGone(each, view); });
  verdict.is_beyond = usual && double{verdict.norm} > rules_->factor * double{*usual};
  if (verdict.is_beyond && !Planted(PlantedBug::kIgnoreNormGate)) verdict.is_applied = false;
  return verdict;
}

std::vector<proto::GatedProducer> NormGate::Report(const PushHistory& history,
                                                   const ClusterView& view) const {
  std::vector<proto::GatedProducer> report;
  if (!rules_) return report;
  std::vector<float> usual;
  history.ForEachNorm([&](const Producer& producer, const PushNorms& norms) {
    if (norms.is_known() && !IsGone(producer, view)) usual.push_back(norms.usual());
  });
  std::sort(usual.begin(), usual.end());
  history.ForEachNorm([&](const Producer& producer, const PushNorms& norms) {
    if (norms.beyond() == 0 || IsGone(producer, view)) return;
    proto::GatedProducer& gated = report.emplace_back();
    gated.set_is_group(producer.kind == Producer::Kind::kGroup);
    gated.set_id(producer.id);
    gated.set_pushes(norms.pushes());
    gated.set_beyond(norms.beyond());
    gated.set_beyond_in_row(norms.beyond_in_row());
    gated.set_usual(norms.usual());
    gated.set_usual_of_others(
        MedianOfOthers(usual, norms.is_known() ? std::optional(norms.usual()) : std::nullopt));
  });
  return report;
}

}  // namespace covey::server
