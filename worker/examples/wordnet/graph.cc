// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/graph.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace covey::wordnet {
namespace {

// The place of a key that is there.
uint32_t PlaceOf(SynsetKey key, const std::vector<SynsetKey>& keys) {
  return static_cast<uint32_t>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
}

// The synsets with at least `neighbors_min` different neighbors.
std::vector<SynsetKey> EntitiesOf(const WordNet& net, size_t neighbors_min) {
  std::vector<std::pair<SynsetKey, SynsetKey>> neighbors;
  for (const auto& [head, relation, tail] : net.facts) {
    if (head == tail) continue;
    neighbors.emplace_back(head, tail);
    neighbors.emplace_back(tail, head);
  }
  std::sort(neighbors.begin(), neighbors.end());
  neighbors.erase(std::unique(neighbors.begin(), neighbors.end()), neighbors.end());
  std::vector<SynsetKey> entities;
  for (size_t i = 0, end = 0; i < neighbors.size(); i = end) {
    while (end < neighbors.size() && neighbors[end].first == neighbors[i].first) ++end;
    if (end - i >= neighbors_min) entities.push_back(neighbors[i].first);
  }
  return entities;
}

std::vector<Fact<uint32_t>> FactsAmong(const std::vector<SynsetKey>& entities, const WordNet& net) {
  std::vector<Fact<uint32_t>> facts;
  for (const auto& [head, relation, tail] : net.facts) {
    if (!std::binary_search(entities.begin(), entities.end(), head) ||
        !std::binary_search(entities.begin(), entities.end(), tail)) {
      continue;
    }
    facts.push_back(
        {.head = PlaceOf(head, entities), .relation = relation, .tail = PlaceOf(tail, entities)});
  }
  return facts;
}

// Divides the facts into units, each of which is held out as a whole: a fact, or all facts of two
// synsets. Sorts `facts` for that, in which the units lie.
std::vector<std::span<const Fact<uint32_t>>> UnitsOf(std::vector<Fact<uint32_t>>& facts,
                                                     Split split) {
  std::vector<std::span<const Fact<uint32_t>>> units;
  const auto pair_of = [](const Fact<uint32_t>& fact) { return std::minmax(fact.head, fact.tail); };
  if (split == Split::kPairs) {
    std::stable_sort(facts.begin(), facts.end(), [pair_of](const auto& a, const auto& b) {
      return std::pair<uint32_t, uint32_t>(pair_of(a)) < std::pair<uint32_t, uint32_t>(pair_of(b));
    });
  }
  for (size_t i = 0, end = 0; i < facts.size(); i = end) {
    end = i + 1;
    while (split == Split::kPairs && end < facts.size() &&
           pair_of(facts[end]) == pair_of(facts[i])) {
      ++end;
    }
    units.push_back(std::span<const Fact<uint32_t>>(facts).subspan(i, end - i));
  }
  return units;
}

}  // namespace

absl::string_view SplitName(Split split) { return split == Split::kFacts ? "rr" : "strict"; }

absl::StatusOr<Split> ParseSplit(absl::string_view text) {
  for (const Split split : {Split::kFacts, Split::kPairs}) {
    if (text == SplitName(split)) return split;
  }
  return absl::InvalidArgumentError("not accepted; choose rr or strict");
}

absl::StatusOr<Graph> MakeGraph(const WordNet& net, const GraphOptions& options) {
  Graph graph;
  graph.entities = EntitiesOf(net, options.neighbors_min);
  std::vector<Fact<uint32_t>> facts = FactsAmong(graph.entities, net);
  std::vector<uint32_t> left(graph.entities.size());  // facts to train with, of each entity
  for (const Fact<uint32_t>& fact : facts) {
    ++left[fact.head];
    ++left[fact.tail];
  }
  auto units = UnitsOf(facts, options.split);
  Random random(options.seed);
  for (size_t i = units.size(); i > 1; --i) std::swap(units[i - 1], units[random.Below(i)]);
  for (const auto unit : units) {
    const auto count = static_cast<uint32_t>(unit.size());
    const auto [head, relation, tail] = unit.front();
    auto& held_out = graph.test.size() < options.held_out ? graph.test : graph.validation;
    if (head == tail || held_out.size() + count > options.held_out || left[head] <= count ||
        left[tail] <= count) {
      graph.training.insert(graph.training.end(), unit.begin(), unit.end());
      continue;
    }
    held_out.insert(held_out.end(), unit.begin(), unit.end());
    left[head] -= count;
    left[tail] -= count;
  }
  if (graph.test.size() + graph.validation.size() == 2 * options.held_out) return graph;
  return absl::InvalidArgumentError(absl::StrCat("of ", facts.size(), " facts ",
                                                 graph.test.size() + graph.validation.size(),
                                                 " can be held out, and ", 2 * options.held_out,
                                                 " are to be; hold out fewer, or give more data"));
}

}  // namespace covey::wordnet
