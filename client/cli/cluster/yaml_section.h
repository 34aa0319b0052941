// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/runtime/config_value.h"

namespace covey::cli {

// One mapping `key: value` of a YAML file, read key by key; errors name the file and the line. An
// absent key leaves its field as it is. Pure. INVALID_ARGUMENT: of another form than the field.
class YamlSection {
 public:
  // `name`: what errors call it: "ssh". Refuses keys that are not `known`, or are given twice.
  static absl::StatusOr<YamlSection> Open(const YAML::Node& node, const std::string& path,
                                          absl::string_view name,
                                          const std::vector<std::string>& known);

  // INVALID_ARGUMENT: a scalar of `root` holds a zero byte, which no program takes; or there are
  // more than kNodesMax keys and values, in a tree in which each alias is what it stands for.
  static constexpr size_t kNodesMax = 1'000'000;
  static absl::Status CheckScalars(const YAML::Node& root, const std::string& path);

  // "hosts.yaml:7", of the section and of one of its keys.
  std::string at() const { return At(path_, node_); }
  std::string AtKey(absl::string_view key) const;
  static std::string At(const std::string& path, const YAML::Node& node);

  bool Has(absl::string_view key) const { return Find(key).IsDefined(); }
  // Not defined when there is none.
  YAML::Node Find(absl::string_view key) const;

  // A scalar, in the form of the option of a program.
  template <typename T>
  absl::Status Read(absl::string_view key, T* field) const {
    const YAML::Node value = Find(key);
    if (!value.IsDefined()) return absl::OkStatus();
    if (!value.IsScalar()) return Wrong(value, key, "one value");
    const absl::Status status = ReadValue(absl::string_view(value.Scalar()), field);
    if (status.ok()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(At(path_, value), ": ", key, ": \"",
                                                   value.Scalar(), "\" is ", status.message()));
  }
  // A list of scalars, or one.
  absl::Status ReadWords(absl::string_view key, std::vector<std::string>* field) const;
  // `NAME: VALUE`, scalars all.
  absl::Status ReadMap(absl::string_view key, std::map<std::string, std::string>* field) const;
  // A list of mappings, or one.
  absl::StatusOr<std::vector<YAML::Node>> ReadSections(absl::string_view key) const;

 private:
  YamlSection(YAML::Node node, std::string path) : node_(std::move(node)), path_(std::move(path)) {}

  absl::Status Wrong(const YAML::Node& value, absl::string_view key, absl::string_view form) const;

  YAML::Node node_;
  std::string path_;
};

}  // namespace covey::cli
