// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/package_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace covey::factorization {
namespace {

// A name without the version, architecture or profile that may follow it.
absl::string_view NameIn(absl::string_view relation) {
  relation = absl::StripLeadingAsciiWhitespace(relation);
  return relation.substr(0, relation.find_first_of(" (:[<"));
}

void AddDepends(absl::string_view value, Package& package) {
  for (const absl::string_view relation : absl::StrSplit(value, ',')) {
    // Of alternatives the first: its name ends there, too.
    const absl::string_view name = NameIn(relation.substr(0, relation.find('|')));
    if (!name.empty()) package.depends.emplace_back(name);
  }
}

void AddTags(absl::string_view value, Package& package) {
  for (const absl::string_view tag : absl::StrSplit(value, ',')) {
    const absl::string_view name = absl::StripAsciiWhitespace(tag);
    if (!name.empty()) package.tags.emplace_back(name);
  }
}

void SetField(absl::string_view field, absl::string_view value, Package& package) {
  if (field == "Package") package.name = std::string(value);
  if (field == "Source") package.source = std::string(NameIn(value));
  if (field == "Section") package.section = std::string(value);
  if (field == "Maintainer") package.maintainer = std::string(value);
  if (field == "Description" || field == "Description-en") package.description = std::string(value);
  if (field == "Depends" || field == "Pre-Depends") AddDepends(value, package);
  if (field == "Tag") AddTags(value, package);
}

}  // namespace

absl::StatusOr<std::vector<Package>> ReadPackages(examples::LineReader& lines) {
  std::vector<Package> packages;
  absl::flat_hash_set<std::string> names;
  Package package;
  std::string field;
  bool is_open = false;
  const auto refuse = [&lines](absl::string_view problem) {
    return absl::DataLossError(
        absl::StrCat("reading ", lines.name(), ": line ", lines.number(), ": ", problem));
  };
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const std::optional<absl::string_view> line, lines.Next());
    if (!line || line->empty()) {
      if (is_open) {
        if (package.name.empty()) return refuse("the paragraph before has no field Package");
        if (package.source.empty()) package.source = package.name;
        std::sort(package.depends.begin(), package.depends.end());
        package.depends.erase(std::unique(package.depends.begin(), package.depends.end()),
                              package.depends.end());
        if (names.insert(package.name).second) packages.push_back(std::move(package));
      }
      if (!line) return packages;
      package = Package();
      is_open = false;
      continue;
    }
    if (line->front() == ' ' || line->front() == '\t') {
      // A field goes on; that of the description is the long one.
      if (!is_open) return refuse("a field goes on that has not begun");
      if (field == "Tag") AddTags(*line, package);
      continue;
    }
    const size_t colon = line->find(':');
    if (colon == absl::string_view::npos) return refuse("no field, which has a colon");
    is_open = true;
    field = std::string(line->substr(0, colon));
    SetField(field, absl::StripAsciiWhitespace(line->substr(colon + 1)), package);
  }
}

}  // namespace covey::factorization
