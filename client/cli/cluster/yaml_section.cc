// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/yaml_section.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"

namespace covey::cli {

std::string YamlSection::At(const std::string& path, const YAML::Node& node) {
  return absl::StrCat(path, ":", node.Mark().line + 1);
}

absl::StatusOr<YamlSection> YamlSection::Open(const YAML::Node& node, const std::string& path,
                                              absl::string_view name,
                                              const std::vector<std::string>& known) {
  if (!node.IsMap()) {
    return absl::InvalidArgumentError(
        absl::StrCat(At(path, node), ": ", name,
                     " is no list of `key: value`; its keys are: ", WriteValue(known)));
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string at = At(path, entry.first);
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(at, ": unknown key \"", key, "\" in ", name,
                                                     "; did you mean \"", NearestName(key, known),
                                                     "\"?"));
    }
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(at, ": \"", key, "\" is given twice in ", name, "; leave one of them"));
    }
  }
  return YamlSection(node, path);
}

YAML::Node YamlSection::Find(absl::string_view key) const {
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == key && !entry.second.IsNull()) return entry.second;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

absl::Status YamlSection::CheckScalars(const YAML::Node& root, const std::string& path) {
  // Not by recursion: an anchor makes a node a part of itself, or of many others.
  std::vector<YAML::Node> pending = {root};
  for (size_t seen = 1; !pending.empty();) {
    const YAML::Node node = pending.back();
    pending.pop_back();
    if (node.IsScalar() && absl::StrContains(node.Scalar(), '\0')) {
      return absl::InvalidArgumentError(absl::StrCat(
          At(path, node), ": it holds a zero byte, which no program takes; remove it"));
    }
    if (!node.IsMap() && !node.IsSequence()) continue;
    seen += node.size() * (node.IsMap() ? 2 : 1);
    if (seen > kNodesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(At(path, node),
                       ": with all that its aliases stand for, the file has more "
                       "than ",
                       kNodesMax, " values; write these out, without an alias in its own anchor"));
    }
    for (const auto& entry : node) {
      if (node.IsMap()) {
        pending.push_back(entry.first);
        pending.push_back(entry.second);
      } else {
        pending.push_back(entry);
      }
    }
  }
  return absl::OkStatus();
}

std::string YamlSection::AtKey(absl::string_view key) const {
  const YAML::Node value = Find(key);
  return value.IsDefined() ? At(path_, value) : at();
}

absl::Status YamlSection::Wrong(const YAML::Node& value, absl::string_view key,
                                absl::string_view form) const {
  return absl::InvalidArgumentError(
      absl::StrCat(At(path_, value), ": ", key, " is to be ", form, "; write it so"));
}

absl::Status YamlSection::ReadWords(absl::string_view key, std::vector<std::string>* field) const {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return absl::OkStatus();
  constexpr char kForm[] = "a list of words, as in [a, b]";
  if (value.IsScalar()) {
    *field = {value.Scalar()};
    return absl::OkStatus();
  }
  if (!value.IsSequence()) return Wrong(value, key, kForm);
  field->clear();
  for (const auto& word : value) {
    if (!word.IsScalar()) return Wrong(word, key, kForm);
    field->push_back(word.Scalar());
  }
  return absl::OkStatus();
}

absl::Status YamlSection::ReadMap(absl::string_view key,
                                  std::map<std::string, std::string>* field) const {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return absl::OkStatus();
  constexpr char kForm[] = "a list of `NAME: VALUE`";
  if (!value.IsMap()) return Wrong(value, key, kForm);
  for (const auto& entry : value) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) return Wrong(entry.first, key, kForm);
    (*field)[entry.first.Scalar()] = entry.second.Scalar();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<YAML::Node>> YamlSection::ReadSections(absl::string_view key) const {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return std::vector<YAML::Node>();
  if (!value.IsSequence()) return std::vector<YAML::Node>{value};
  return std::vector<YAML::Node>(value.begin(), value.end());
}

}  // namespace covey::cli
