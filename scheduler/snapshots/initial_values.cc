// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/initial_values.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace covey::scheduler {

InitialValuesChoice InitialValuesChoice::Parse(absl::string_view text) {
  std::vector<std::string> words = absl::StrSplit(text, ',', absl::SkipWhitespace());
  if (words.empty()) return {};
  return {.snapshot = words[0], .tables = {words.begin() + 1, words.end()}};
}

absl::StatusOr<proto::InitialValues> InitialValuesOf(const InitialValuesChoice& choice,
                                                     const proto::SnapshotManifest& manifest) {
  proto::InitialValues values;
  values.set_folder(manifest.folder());
  for (const proto::Table& table : manifest.state().view().tables()) {
    const proto::Shard& last = table.shards(table.shards_size() - 1);
    (*values.mutable_tables())[table.spec().name()] = last.first_element() + last.element_count();
  }
  if (choice.tables.empty()) return values;
  proto::InitialValues chosen;
  chosen.set_folder(values.folder());
  for (const std::string& name : choice.tables) {
    const auto table = values.tables().find(name);
    if (table == values.tables().end()) {
      return absl::NotFoundError(absl::StrCat("initial-values: ", values.folder(),
                                              " has no table '", name, "'; covey snapshot show ",
                                              values.folder(), " lists its tables"));
    }
    (*chosen.mutable_tables())[name] = table->second;
  }
  return chosen;
}

}  // namespace covey::scheduler
