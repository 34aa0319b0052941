// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::wordnet {

// A pointer of WordNet's data files that is kept; its inverse is not.
struct Relation {
  absl::string_view symbol;
  absl::string_view name;
};

inline constexpr std::array<Relation, 18> kRelations = {{
    {"!", "antonym"},
    {"@", "hypernym"},
    {"@i", "instance hypernym"},
    {"%m", "member meronym"},
    {"%s", "substance meronym"},
    {"%p", "part meronym"},
    {"=", "attribute"},
    {"+", "derivation"},
    {";c", "topic"},
    {";r", "region"},
    {";u", "usage"},
    {"*", "entailment"},
    {">", "cause"},
    {"^", "see also"},
    {"$", "verb group"},
    {"&", "similar to"},
    {"<", "participle"},
    {"\\", "pertainym"},
}};

// A fact: `head` is related to `tail`. What heads and tails are is said where facts are.
template <typename Id>
struct Fact {
  Id head = 0;
  uint32_t relation = 0;  // of kRelations
  Id tail = 0;
  auto operator<=>(const Fact&) const = default;
};

// A synset's number: its part of speech (noun 1, verb 2, adjective 3, adverb 4) << 32 | its offset
// in the data file.
using SynsetKey = uint64_t;

// The content of WordNet's four data files, in Debian's package wordnet-base.
struct WordNet {
  std::vector<SynsetKey> synsets;      // ascending
  uint64_t pointers = 0;               // that the files hold
  std::vector<Fact<SynsetKey>> facts;  // ascending, each once; of kRelations only
};

// Reads data.noun, data.verb, data.adj and data.adv in `directory`. Errors name file, line, problem
// and remedy. NOT_FOUND: a file cannot be opened. DATA_LOSS: a line is not as wndb(5WN) says, or a
// pointer leads nowhere.
absl::StatusOr<WordNet> ReadWordNet(const std::string& directory);

// DATA_LOSS: there are not as many synsets, pointers and facts as in WordNet 3.0.
absl::Status CheckCounts(const WordNet& net);

}  // namespace covey::wordnet
