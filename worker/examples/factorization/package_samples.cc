// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/package_samples.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/random.h"

namespace covey::factorization {
namespace {

constexpr uint64_t kTenths = 10;
constexpr size_t kNegatives = 2;
// Draws until a target is given up on: those of a package that depends on nearly all of them.
constexpr int kDrawsMax = 100;

enum class Side { kTraining, kTest, kNeither };

Side SideOf(const Package& package, HeldOut test) {
  const uint64_t tenth = TextKey(absl::StrCat("side/", package.source)) % kTenths;
  const uint64_t test_tenth = test == HeldOut::kTest ? kTenths - 1 : kTenths - 2;
  if (tenth == test_tenth) return Side::kTest;
  return tenth < kTenths - 2 ? Side::kTraining : Side::kNeither;
}

// The samples of this side; null: none.
Samples* PartOf(DataSet& set, Side side) {
  if (side == Side::kNeither) return nullptr;
  return side == Side::kTraining ? &set.training : &set.test;
}

bool IsWordPart(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '+'; }

// Words of a letter and at least one more.
std::vector<std::string> WordsOf(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  std::vector<std::string> words;
  for (size_t i = 0; i < lower.size();) {
    if (!absl::ascii_islower(lower[i])) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < lower.size() && IsWordPart(lower[end])) ++end;
    if (end - i >= 2) words.push_back(lower.substr(i, end - i));
    i = end;
  }
  return words;
}

// The texts of a package's features, each once, ascending.
std::vector<std::string> FeaturesOf(const Package& package) {
  std::vector<std::string> features = {absl::StrCat("section/", package.section),
                                       absl::StrCat("maintainer/", package.maintainer),
                                       absl::StrCat("source/", package.source)};
  for (const std::string& word : WordsOf(package.description)) {
    features.push_back(absl::StrCat("word/", word));
  }
  for (const absl::string_view part :
       absl::StrSplit(package.name, absl::ByAnyChar("-."), absl::SkipEmpty())) {
    features.push_back(absl::StrCat("name/", part));
  }
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

using Keys = std::vector<uint64_t>;

Keys KeysOf(absl::string_view side, const std::vector<std::string>& features) {
  Keys keys;
  for (const std::string& feature : features) {
    keys.push_back(TextKey(absl::StrCat(side, "/", feature)));
  }
  return keys;
}

void AddAll(const Keys& keys, Samples& samples) {
  for (const uint64_t key : keys) samples.AddFeature(key, 1);
}

}  // namespace

absl::StatusOr<DataSet> DependencySamples(std::span<const Package> packages, HeldOut test,
                                          uint64_t seed) {
  absl::flat_hash_map<absl::string_view, size_t> places;
  std::vector<Keys> as_package, as_target;
  for (size_t i = 0; i < packages.size(); ++i) {
    places[packages[i].name] = i;
    std::vector<std::string> features = FeaturesOf(packages[i]);
    as_package.push_back(KeysOf("package", features));
    features.push_back(absl::StrCat("itself/", packages[i].name));
    as_target.push_back(KeysOf("target", features));
  }
  std::vector<std::pair<size_t, size_t>> dependencies;
  for (size_t i = 0; i < packages.size(); ++i) {
    for (const std::string& name : packages[i].depends) {
      const auto target = places.find(name);
      if (target == places.end() || packages[target->second].source == packages[i].source) continue;
      dependencies.emplace_back(i, target->second);
    }
  }
  if (dependencies.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("none of ", packages.size(),
                     " packages depends on one of another source; run `apt-get "
                     "update`, or name an index with --index"));
  }
  DataSet set;
  Random random(seed);
  const auto depends_on = [packages](const Package& package, size_t target) {
    return std::binary_search(package.depends.begin(), package.depends.end(),
                              packages[target].name);
  };
  for (const auto& [package, target] : dependencies) {
    // Drawn for all, so that they do not depend on what is held out.
    std::vector<size_t> targets = {target};
    for (int draws = 0; draws < kDrawsMax && targets.size() <= kNegatives; ++draws) {
      const size_t drawn = dependencies[random.Below(dependencies.size())].second;
      if (!depends_on(packages[package], drawn)) targets.push_back(drawn);
    }
    Samples* samples = PartOf(set, SideOf(packages[package], test));
    if (samples == nullptr) continue;
    for (size_t i = 0; i < targets.size(); ++i) {
      AddAll(as_package[package], *samples);
      AddAll(as_target[targets[i]], *samples);
      samples->AddSample(i == 0);
    }
  }
  return set;
}

absl::StatusOr<DataSet> RoleSamples(std::span<const Package> packages, HeldOut test) {
  DataSet set;
  for (const Package& package : packages) {
    const bool has_role =
        std::any_of(package.tags.begin(), package.tags.end(),
                    [](const std::string& tag) { return absl::StartsWith(tag, "role::"); });
    Samples* samples = PartOf(set, SideOf(package, test));
    if (!has_role || samples == nullptr) continue;
    AddAll(KeysOf("package", FeaturesOf(package)), *samples);
    AddAll(KeysOf("depends", package.depends), *samples);
    samples->AddSample(std::find(package.tags.begin(), package.tags.end(), "role::program") !=
                       package.tags.end());
  }
  if (set.training.size() > 0 && set.test.size() > 0) return set;
  return absl::InvalidArgumentError(
      absl::StrCat("of ", packages.size(),
                   " packages too few have a tag that names their role; run `apt-get "
                   "update`, or name an index with --index"));
}

}  // namespace covey::factorization
