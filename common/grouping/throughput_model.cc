// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/throughput_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "common/grouping/stragglers/straggler_options.h"

namespace covey {
namespace {

// Assumed time per step when no speed is known; then its ratio to the cost of communication is
// unknown, too.
constexpr double kUnknownSeconds = 0.1;
constexpr double kSecondsPerHour = 3600;

// Quantile of the standard normal for 0.5 <= p < 1 (Abramowitz and Stegun 26.2.23; error below
// 4.5e-4).
double UpperNormalQuantile(double p) {
  const double t = std::sqrt(-2 * std::log(1 - p));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

// Expected maximum of `count` standard normals (Blom 1958); 0 for one.
double ExpectedMaximum(size_t count) {
  if (count < 2) return 0;
  const double n = static_cast<double>(count);
  return UpperNormalQuantile((n - 0.375) / (n + 0.25));
}

double MedianSpeed(const std::vector<PlannedWorker>& workers) {
  std::vector<double> speeds;
  for (const PlannedWorker& worker : workers) {
    if (worker.speed > 0) speeds.push_back(worker.speed);
  }
  if (speeds.empty()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>((speeds.size() - 1) / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

// Calls `visit(begin, end)` for each run of equal `domains` of members [begin, end).
template <typename Visit>
void ForEachRun(std::span<const uint32_t> members, const std::vector<uint32_t>& domains,
                size_t begin, size_t end, const Visit& visit) {
  while (begin < end) {
    size_t next = begin + 1;
    while (next < end && domains[members[next]] == domains[members[begin]]) ++next;
    visit(begin, next);
    begin = next;
  }
}

}  // namespace

ThroughputModel::ThroughputModel(std::vector<PlannedWorker> workers,
                                 const ThroughputParameters& model)
    : model_(model) {
  std::vector<TopologyPath> paths;
  for (const PlannedWorker& worker : workers) paths.push_back(ParseTopologyPath(worker.labels));
  std::vector<uint32_t> order(workers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(paths[a], workers[a].rank, workers[a].node) <
           std::tie(paths[b], workers[b].rank, workers[b].node);
  });
  const double median = MedianSpeed(workers);
  for (const uint32_t from : order) {
    paths_.push_back(std::move(paths[from]));
    workers_.push_back(std::move(workers[from]));
    const double speed = workers_.back().speed > 0 ? workers_.back().speed : median;
    seconds_.push_back(speed > 0 ? model_.samples_per_step / speed : kUnknownSeconds);
  }
  for (size_t level = 0; level < kLevels; ++level) {
    domains_[level] = DomainsAt(paths_, static_cast<Level>(level));
  }
  push_seconds_per_byte_.assign(workers_.size(),
                                1 / model_.costs.at(Level::kCluster).bytes_per_second);
  for (size_t level = 0; level < kNamedLevels; ++level) {
    std::map<uint32_t, double> sharing;
    for (const uint32_t domain : domains_[level]) ++sharing[domain];
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      if (paths_[worker].at(static_cast<Level>(level)).empty()) continue;
      push_seconds_per_byte_[worker] = std::max(
          push_seconds_per_byte_[worker],
          sharing[domains_[level][worker]] / model_.costs.levels[level].uplink_bytes_per_second);
    }
  }
  for (size_t count = 0; count <= workers_.size(); ++count) {
    slowest_of_.push_back(std::exp(model_.noise_sigma * ExpectedMaximum(count)));
  }
}

double ThroughputModel::Samples(size_t members) const {
  if (model_.group_samples_per_step > 0) return model_.group_samples_per_step;
  return static_cast<double>(members) * model_.samples_per_step;
}

double ThroughputModel::ExpectedSlowest(std::span<const uint32_t> members) const {
  std::vector<double> seconds;
  seconds.reserve(members.size());
  const double part =
      Samples(members.size()) / (static_cast<double>(members.size()) * model_.samples_per_step);
  for (const uint32_t member : members) seconds.push_back(part * seconds_[member]);
  double slowest = 0;
  if (model_.shares_follow_speed) {
    double speeds = 0;
    for (const double each : seconds) speeds += 1 / each;
    slowest =
        std::max(static_cast<double>(seconds.size()) / speeds,
                 StragglerOptions().share_min * *std::max_element(seconds.begin(), seconds.end())) *
        slowest_of_[seconds.size()];
  } else if (std::adjacent_find(seconds.begin(), seconds.end(), std::not_equal_to<>()) ==
             seconds.end()) {
    slowest = seconds.front() * slowest_of_[seconds.size()];
  } else {
    std::sort(seconds.begin(), seconds.end(), std::greater<>());
    for (size_t i = 0; i < seconds.size(); ++i) {
      slowest = std::max(slowest, seconds[i] * slowest_of_[i + 1]);
    }
  }
  if (model_.hiccup_chance <= 0) return slowest;
  const double count = static_cast<double>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  const double any = 1 - std::pow(1 - model_.hiccup_chance, count);
  return slowest + any * std::max(0.0, model_.hiccup_factor * mean - slowest);
}

// The kind of link that joins members of one domain of `level`; a wider kind when the domain has no
// name.
Level ThroughputModel::LinkWithin(uint32_t index, size_t level) const {
  while (level < kNamedLevels && paths_[index].at(static_cast<Level>(level)).empty()) ++level;
  return static_cast<Level>(level);
}

double ThroughputModel::Communication(std::span<const uint32_t> members) const {
  double latency = 0, own_link = 0;
  std::array<double, kNamedLevels> uplinks = {};
  // How much of the gradient one domain of each level holds at this point.
  std::array<double, kNamedLevels> held;
  held.fill(model_.gradient_bytes);
  for (size_t level = 0; level < kLevels; ++level) {
    const Meeting meeting = MeetAt(members, level);
    if (meeting.places < 2) continue;
    const double p = static_cast<double>(meeting.places);
    const LinkCost& link = model_.costs.at(meeting.link);
    latency += 2 * std::ceil(std::log2(p)) * link.latency_seconds;
    own_link += 2 * (p - 1) / p * model_.gradient_bytes / static_cast<double>(meeting.smallest) /
                link.bytes_per_second;
    for (size_t narrower = 0; narrower < level; ++narrower) {
      uplinks[narrower] += 2 * (p - 1) / p * held[narrower];
      held[narrower] /= p;
    }
  }
  double transfer = own_link;
  for (size_t level = 0; level < kNamedLevels; ++level) {
    const bool is_named = std::any_of(members.begin(), members.end(), [&](uint32_t member) {
      return !paths_[member].at(static_cast<Level>(level)).empty();
    });
    if (!is_named) continue;
    transfer =
        std::max(transfer, uplinks[level] / model_.costs.levels[level].uplink_bytes_per_second);
  }
  double seconds_per_byte = 0;
  for (const uint32_t member : members) {
    seconds_per_byte = std::max(seconds_per_byte, push_seconds_per_byte_[member]);
  }
  const double part = model_.pushed_bytes / static_cast<double>(members.size());
  return latency + transfer + part * seconds_per_byte;
}

ThroughputModel::Meeting ThroughputModel::MeetAt(std::span<const uint32_t> members,
                                                 size_t level) const {
  Meeting most;
  ForEachRun(members, domains_[level], 0, members.size(), [&](size_t begin, size_t end) {
    Meeting here{.places = end - begin, .smallest = 1, .link = LinkWithin(members[begin], level)};
    if (level > 0) {
      here.places = 0;
      here.smallest = end - begin;
      ForEachRun(members, domains_[level - 1], begin, end, [&](size_t from, size_t to) {
        ++here.places;
        here.smallest = std::min(here.smallest, to - from);
      });
    }
    if (here.places > most.places) {
      most = here;
    } else if (here.places == most.places) {
      most.smallest = std::min(most.smallest, here.smallest);
      most.link = std::max(most.link, here.link);
    }
  });
  return most;
}

ThroughputModel::Terms ThroughputModel::Rate(std::span<const uint32_t> members) const {
  double failures_per_hour = 0;
  for (const uint32_t member : members) failures_per_hour += workers_[member].failures_per_hour;
  return {.members = members.size(),
          .compute_seconds = members.empty() ? 0 : ExpectedSlowest(members),
          .communication_seconds = Communication(members),
          .availability = 1 / (1 + failures_per_hour / kSecondsPerHour * model_.recovery_seconds)};
}

double ThroughputModel::StepSeconds(const Terms& terms, size_t groups) const {
  return terms.compute_seconds + terms.communication_seconds +
         model_.server_seconds_per_group * static_cast<double>(groups);
}

double ThroughputModel::SamplesPerSecond(const Terms& terms, size_t groups,
                                         double slowest_seconds) const {
  if (terms.members == 0) return 0;
  double step = StepSeconds(terms, groups);
  if (model_.groups_in_step) step = std::max(step, slowest_seconds);
  return Samples(terms.members) * terms.availability / step;
}

double ThroughputModel::StatisticalFactor(size_t groups) const {
  return std::pow(static_cast<double>(groups), -model_.statistical_penalty);
}

double ThroughputModel::Fit(size_t groups) const {
  if (model_.fits.empty()) return 1;
  if (const auto tried = model_.fits.find(groups); tried != model_.fits.end()) {
    return tried->second;
  }
  if (model_.fits.size() == 1) return std::max(1.0, model_.fits.begin()->second);
  const auto distance = [groups](size_t number) {
    return std::abs(std::log(static_cast<double>(number) / static_cast<double>(groups)));
  };
  return std::min_element(
             model_.fits.begin(), model_.fits.end(),
             [&](const auto& a, const auto& b) { return distance(a.first) < distance(b.first); })
      ->second;
}

}  // namespace covey
