// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/mean_truth.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/published_view.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Of wire formats that round.
constexpr double kTolerance = 0.02;

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// All elements of `mean` have the value that they should.
bool IsEverywhere(double expected, const MeanTruth::Mean& mean) {
  std::vector<double> wanted(mean.values.size(), 0);
  for (const size_t element : mean.elements) wanted[element] = expected;
  return std::equal(mean.values.begin(), mean.values.end(), wanted.begin(),
                    [](float value, double want) {
                      return std::abs(value - want) <= kTolerance * std::abs(want);
                    });
}

}  // namespace

void MeanTruth::OnSend(absl::Time, const Message& message) {
  const proto::ClusterView* view = PublishedView(message);
  if (view == nullptr) return;
  for (const proto::Node& node : view->nodes()) {
    if (node.state() != proto::Node::ALIVE) departed_.insert(NodeId(node.id()));
  }
}

void MeanTruth::Given(const std::string& member, const Place& place, const Gradient& gradient) {
  known_[place].given[member] = gradient;
}

void MeanTruth::Got(const std::string& member, const Place& place, const Mean& mean) {
  Known& known = known_[place];
  if (!IsMeanOfSome(member, known, mean)) {
    const float value = mean.elements.empty() ? 0 : mean.values[mean.elements[0]];
    Complain(member, place,
             absl::StrCat("got ", value, " over ", mean.samples,
                          " samples, which is no mean of its own and others' gradients"));
  }
  for (const Known::Result& other : known.results) {
    if (departed_.count(mean.node) > 0 || departed_.count(other.node) > 0) continue;
    if (SameBits(other.values, mean.values)) {
      ++compared_;
    } else {
      const auto at = std::mismatch(other.values.begin(), other.values.end(), mean.values.begin());
      Complain(member, place,
               absl::StrCat("got other bits than ", other.member, ", ", *at.second, " and not ",
                            *at.first, " in element ", at.first - other.values.begin(), " of ",
                            mean.values.size()));
    }
  }
  known.results.push_back(
      {.member = member, .node = mean.node, .values = {mean.values.begin(), mean.values.end()}});
}

bool MeanTruth::IsMeanOfSome(const std::string& member, const Known& known, const Mean& mean) {
  const std::vector<std::pair<std::string, Gradient>> given(known.given.begin(), known.given.end());
  const uint32_t sets = 1u << given.size();
  for (uint32_t set = sets - 1; set > 0; --set) {
    double sum = 0;
    uint64_t samples = 0;
    bool has_own = false;
    for (size_t i = 0; i < given.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      const auto& [name, gradient] = given[i];
      sum += gradient.value * static_cast<double>(gradient.samples);
      samples += gradient.samples;
      has_own = has_own || name == member;
    }
    if (!has_own || samples != mean.samples) continue;
    if (!IsEverywhere(samples == 0 ? 0 : sum / static_cast<double>(samples), mean)) continue;
    if (set != sets - 1) ++partial_;
    return true;
  }
  return false;
}

void MeanTruth::Complain(const std::string& member, const Place& place, absl::string_view what) {
  violations_.Add(
      kGroups, absl::StrCat(member, " of group ", place.group.value(), " ", what, ", for tensor ",
                            place.tensor, " in step ", place.step.value()));
}

}  // namespace covey::sim
