// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/examples/wordnet/wordnet_files.h"

namespace covey::wordnet {

// The knowledge graph of a run: the facts among synsets with several neighbors, divided into those
// to train with and those to ask for. The same for the same data, options and seed on all workers.
struct Graph {
  // Ascending; facts name them by their place here.
  std::vector<SynsetKey> entities;
  std::vector<Fact<uint32_t>> training;
  std::vector<Fact<uint32_t>> validation;
  std::vector<Fact<uint32_t>> test;

  size_t facts() const { return training.size() + validation.size() + test.size(); }
};

// How facts are held out. Each end of one that is keeps a fact to train with.
enum class Split {
  // By fact, as WN18RR does. Of a symmetric relation the one direction may be trained with and the
  // other one asked for, so the figures say mostly what a model remembers.
  kFacts,
  // All facts of two synsets together: what is asked for must be concluded.
  kPairs,
};

// "rr" and "strict".
absl::string_view SplitName(Split split);
absl::StatusOr<Split> ParseSplit(absl::string_view text);

struct GraphOptions {
  Split split = Split::kFacts;
  // Neighbors that a synset needs to be an entity.
  size_t neighbors_min = 3;
  // Facts for validation, and as many for the test.
  size_t held_out = 3000;
  uint64_t seed = 1;
};

// INVALID_ARGUMENT: fewer facts than are to be held out can be.
absl::StatusOr<Graph> MakeGraph(const WordNet& net, const GraphOptions& options);

}  // namespace covey::wordnet
