// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/graph.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::wordnet {
namespace {

using ::testing::HasSubstr;

// Synsets 100, 101, ... in a ring with chords, related in both directions; and one on a stalk.
WordNet Ring(uint64_t size) {
  WordNet net;
  const auto add = [&net](SynsetKey a, SynsetKey b, uint32_t relation) {
    net.facts.push_back({a, relation, b});
    net.facts.push_back({b, relation, a});
  };
  for (uint64_t i = 0; i < size; ++i) {
    net.synsets.push_back(100 + i);
    add(100 + i, 100 + (i + 1) % size, 7);
    add(100 + i, 100 + (i + 2) % size, 15);
  }
  net.synsets.push_back(999);
  add(999, 100, 7);
  std::sort(net.facts.begin(), net.facts.end());
  return net;
}

using Facts = std::vector<Fact<uint32_t>>;

Facts Sorted(const std::vector<const Facts*>& lists) {
  Facts all;
  for (const Facts* list : lists) all.insert(all.end(), list->begin(), list->end());
  std::sort(all.begin(), all.end());
  return all;
}

// The held-out facts, test and validation, some of whose mirror images are trained.
size_t TrainedMirrors(const Graph& graph) {
  const std::set<Fact<uint32_t>> training(graph.training.begin(), graph.training.end());
  size_t mirrors = 0;
  for (const auto& [head, relation, tail] : Sorted({&graph.test, &graph.validation})) {
    if (training.count({tail, relation, head}) > 0) ++mirrors;
  }
  return mirrors;
}

class GraphTest : public ::testing::TestWithParam<Split> {};
INSTANTIATE_TEST_SUITE_P(EachSplit, GraphTest, ::testing::Values(Split::kFacts, Split::kPairs));

TEST_P(GraphTest, DividesTheFactsAmongEntities) {
  const Graph graph =
      *MakeGraph(Ring(60), {.split = GetParam(), .neighbors_min = 3, .held_out = 80, .seed = 5});
  EXPECT_EQ(graph.entities.size(), 60u);  // not the one on the stalk
  EXPECT_EQ(graph.test.size(), 80u);
  EXPECT_EQ(graph.validation.size(), 80u);
  EXPECT_EQ(graph.facts(), 240u);
  const Facts all = Sorted({&graph.training, &graph.validation, &graph.test});
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  // Two thirds are held out, and yet each entity keeps one.
  std::set<uint32_t> trained;
  for (const auto& fact : graph.training) trained.insert({fact.head, fact.tail});
  EXPECT_EQ(trained.size(), 60u);
}

TEST_P(GraphTest, IsAFunctionOfTheSeed) {
  const WordNet net = Ring(60);
  const GraphOptions options = {.split = GetParam(), .held_out = 20, .seed = 5};
  EXPECT_EQ(MakeGraph(net, options)->test, MakeGraph(net, options)->test);
  GraphOptions other = options;
  other.seed = 6;
  EXPECT_NE(MakeGraph(net, options)->test, MakeGraph(net, other)->test);
}

TEST(SplitTest, OnlyPairsKeepMirrorImagesTogether) {
  const WordNet net = Ring(60);
  EXPECT_GT(TrainedMirrors(*MakeGraph(net, {.split = Split::kFacts, .held_out = 20})), 10u);
  EXPECT_EQ(TrainedMirrors(*MakeGraph(net, {.split = Split::kPairs, .held_out = 20})), 0u);
}

TEST(SplitTest, SaysThatTooFewFactsAreThere) {
  const absl::Status status = MakeGraph(Ring(20), {.held_out = 100}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("of 80 facts"));
}

TEST(SplitTest, NamesSplits) {
  for (const Split split : {Split::kFacts, Split::kPairs}) {
    EXPECT_EQ(*ParseSplit(SplitName(split)), split);
  }
  EXPECT_THAT(std::string(ParseSplit("loose").status().message()), HasSubstr("rr or strict"));
}

}  // namespace
}  // namespace covey::wordnet
