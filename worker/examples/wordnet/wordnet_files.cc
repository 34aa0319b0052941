// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/wordnet_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::wordnet {
namespace {

using examples::LineReader;

constexpr absl::string_view kAdvice =
    "install WordNet 3.0 with `apt-get install --reinstall wordnet-base`, or name a folder that "
    "holds its data files with --data-dir";

// Their inverses are kept.
constexpr std::array<absl::string_view, 8> kDropped = {"~",  "~i", "#m", "#p",
                                                       "#s", "-c", "-r", "-u"};

constexpr size_t kSynsets = 117'659;
constexpr uint64_t kPointers = 377'592;
constexpr size_t kFacts = 235'402;

absl::Status WithAdvice(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(status.message(), "; ", kAdvice));
}

std::optional<uint64_t> PartOfSpeech(absl::string_view letter) {
  if (letter == "n") return 1;
  if (letter == "v") return 2;
  // "s" is an adjective that belongs to another one's cluster.
  if (letter == "a" || letter == "s") return 3;
  if (letter == "r") return 4;
  return std::nullopt;
}

std::optional<uint32_t> RelationOf(absl::string_view symbol) {
  const auto* found = std::find_if(kRelations.begin(), kRelations.end(),
                                   [symbol](const Relation& r) { return r.symbol == symbol; });
  if (found == kRelations.end()) return std::nullopt;
  return static_cast<uint32_t>(found - kRelations.begin());
}

std::optional<SynsetKey> KeyOf(absl::string_view letter, absl::string_view offset) {
  const std::optional<uint64_t> part = PartOfSpeech(letter);
  uint32_t number = 0;
  if (!part || !absl::SimpleAtoi(offset, &number)) return std::nullopt;
  return *part << 32 | number;
}

std::optional<size_t> NumberOf(absl::string_view text, int base) {
  size_t value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
    if (digit >= base || value > 10'000) return std::nullopt;
    value = value * static_cast<size_t>(base) + static_cast<size_t>(digit);
  }
  if (text.empty()) return std::nullopt;
  return value;
}

// A line of a data file: "OFFSET FILE TYPE WORDS {WORD ID} POINTERS {SYMBOL OFFSET TYPE PLACE} ...
// | GLOSS". Returns the problem; empty = it has been added.
std::string AddLine(absl::string_view line, WordNet& net) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line.substr(0, line.find('|')), ' ', absl::SkipEmpty());
  if (fields.size() < 4)
    return absl::StrCat("it has ", fields.size(), " fields instead of 4 or more");
  const std::optional<SynsetKey> head = KeyOf(fields[2], fields[0]);
  if (!head) {
    return absl::StrCat("'", fields[0], "' and '", fields[2], "' are no offset and part of speech");
  }
  const std::optional<size_t> words = NumberOf(fields[3], 16);
  if (!words) return absl::StrCat("'", fields[3], "' is no number of words");
  const size_t count_at = 4 + 2 * *words;
  const std::optional<size_t> pointers =
      count_at < fields.size() ? NumberOf(fields[count_at], 10) : std::nullopt;
  if (!pointers || fields.size() < count_at + 1 + 4 * *pointers) {
    return absl::StrCat("it ends before its pointers, of which field ", count_at + 1,
                        " says the number");
  }
  net.synsets.push_back(*head);
  net.pointers += *pointers;
  for (size_t i = 0; i < *pointers; ++i) {
    const absl::string_view* pointer = &fields[count_at + 1 + 4 * i];
    const std::optional<SynsetKey> tail = KeyOf(pointer[2], pointer[1]);
    if (!tail) return absl::StrCat("pointer ", i + 1, " leads to '", pointer[1], "'");
    if (const std::optional<uint32_t> relation = RelationOf(pointer[0])) {
      net.facts.push_back({.head = *head, .relation = *relation, .tail = *tail});
    } else if (std::find(kDropped.begin(), kDropped.end(), pointer[0]) == kDropped.end()) {
      return absl::StrCat("'", pointer[0], "' is no symbol of a pointer");
    }
  }
  return "";
}

absl::Status ReadFile(const std::string& path, WordNet& net) {
  COVEY_ASSIGN_OR_RETURN(LineReader reader, LineReader::OpenFile(path));
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const auto line, reader.Next());
    if (!line) return absl::OkStatus();
    if (absl::StartsWith(*line, "  ")) continue;  // the license
    const std::string problem = AddLine(*line, net);
    if (problem.empty()) continue;
    return absl::DataLossError(
        absl::StrCat("reading ", path, ": line ", reader.number(), ": ", problem));
  }
}

}  // namespace

absl::StatusOr<WordNet> ReadWordNet(const std::string& directory) {
  WordNet net;
  for (const absl::string_view part : {"noun", "verb", "adj", "adv"}) {
    const absl::Status read = ReadFile(absl::StrCat(directory, "/data.", part), net);
    if (!read.ok()) return WithAdvice(read);
  }
  std::sort(net.synsets.begin(), net.synsets.end());
  std::sort(net.facts.begin(), net.facts.end());
  net.facts.erase(std::unique(net.facts.begin(), net.facts.end()), net.facts.end());
  for (const Fact<SynsetKey>& fact : net.facts) {
    if (std::binary_search(net.synsets.begin(), net.synsets.end(), fact.tail)) continue;
    return WithAdvice(absl::DataLossError(absl::StrCat(
        "reading ", directory, ": synset ", fact.head & 0xffffffff, " points as ",
        kRelations[fact.relation].name, " to ", fact.tail & 0xffffffff, ", where no synset is")));
  }
  return net;
}

absl::Status CheckCounts(const WordNet& net) {
  if (net.synsets.size() == kSynsets && net.pointers == kPointers && net.facts.size() == kFacts) {
    return absl::OkStatus();
  }
  return WithAdvice(absl::DataLossError(absl::StrCat(
      "the data files have ", net.synsets.size(), " synsets, ", net.pointers, " pointers and ",
      net.facts.size(), " facts; WordNet 3.0 has ", kSynsets, ", ", kPointers, " and ", kFacts)));
}

}  // namespace covey::wordnet
