// SPDX-License-Identifier: Apache-2.0
#include "common/format/checkpoint_index.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/json_escape.h"

namespace covey {
namespace {

constexpr size_t kShownBytes = 100;

std::string Show(absl::string_view name) {
  return absl::StrCat("\"", JsonEscape(name.substr(0, kShownBytes)), "\"");
}

// A file of the model's own folder: as a path it would lead elsewhere.
bool IsFileName(absl::string_view name) {
  return !name.empty() && name[0] != '.' && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

// Takes the text value by value; builds no tree. Each callback returns whether to go on.
class IndexText final : public nlohmann::json_sax<nlohmann::json> {
 public:
  absl::StatusOr<std::map<std::string, std::string>> Read(absl::string_view text) {
    nlohmann::json::sax_parse(text.begin(), text.end(), this);
    if (status_.ok() && files_.empty()) Fail("it has no \"weight_map\" that names a tensor");
    if (!status_.ok()) return status_;
    return std::move(files_);
  }

  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(int64_t) override { return Other(); }
  bool number_unsigned(uint64_t) override { return Other(); }
  bool number_float(double, const std::string&) override { return Other(); }
  bool binary(nlohmann::json::binary_t&) override { return Other(); }
  bool start_array(size_t) override {
    if (!Other()) return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool start_object(size_t) override {
    if (in_map_) return Other();
    if (depth_ == 1 && key_ == "weight_map") in_map_ = true;
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1) in_map_ = false;
    return true;
  }
  bool key(std::string& text) override {
    if (in_map_ || depth_ == 1) key_ = std::move(text);
    return true;
  }
  bool string(std::string& text) override {
    if (!in_map_) return Other();
    if (!IsFileName(text)) {
      return Fail(absl::StrCat("tensor ", Show(key_), " is in ", Show(text),
                               ", which is no name of a file in the model's folder"));
    }
    if (files_.emplace(key_, std::move(text)).second) return true;
    return Fail(absl::StrCat("tensor ", Show(key_), " occurs twice"));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return Fail(absl::StrCat("it is no JSON text at byte ", position == 0 ? 0 : position - 1));
  }

 private:
  bool Fail(absl::string_view reason) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(reason);
    return false;
  }
  // A value that is no file's name.
  bool Other() {
    if (in_map_) return Fail(absl::StrCat("tensor ", Show(key_), " has no file's name"));
    if (depth_ == 0) return Fail("it is no JSON object");
    if (depth_ == 1 && key_ == "weight_map") return Fail("\"weight_map\" is no object");
    return true;
  }

  absl::Status status_;
  std::map<std::string, std::string> files_;
  // Objects and arrays around the present value.
  uint64_t depth_ = 0;
  bool in_map_ = false;
  std::string key_;
};

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ReadCheckpointIndex(absl::string_view text) {
  if (text.size() > CheckpointIndexLimits::kTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", text.size(), " bytes; at most ",
                                                   CheckpointIndexLimits::kTextBytes, " are read"));
  }
  return IndexText().Read(text);
}

}  // namespace covey
