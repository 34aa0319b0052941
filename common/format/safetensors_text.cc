// SPDX-License-Identifier: Apache-2.0
#include "common/format/safetensors_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/format/safetensors_reader.h"

namespace covey {
namespace {

constexpr absl::string_view kNotesName = "__metadata__";
// A longer name is cut in messages.
constexpr size_t kShownBytesMax = 64;
// A longer message of the JSON parser is cut.
constexpr size_t kParserBytesMax = 160;

bool HasControlCharacter(absl::string_view name) {
  return std::any_of(name.begin(), name.end(),
                     [](char byte) { return absl::ascii_iscntrl(static_cast<uint8_t>(byte)); });
}

}  // namespace

std::string ShowName(absl::string_view name) {
  size_t end = std::min(name.size(), kShownBytesMax);
  // Not inside of a character.
  while (end < name.size() && (name[end] & 0xc0) == 0x80) --end;
  return absl::StrCat("'", absl::Utf8SafeCHexEscape(name.substr(0, end)),
                      end < name.size() ? "...'" : "'");
}

bool SafetensorsText::parse_error(size_t position, const std::string&,
                                  const nlohmann::json::exception& error) {
  // What the parser has read last may be most of the file.
  absl::string_view reason = error.what();
  reason = reason.substr(0, std::min(reason.find("; last read"), kParserBytesMax));
  return Fail(absl::StrCat("byte ", kSafetensorsPrefixBytes + position - 1, ": ",
                           absl::CHexEscape(reason)));
}

bool SafetensorsText::Fail(absl::string_view reason) {
  status_ = absl::InvalidArgumentError(reason);
  return false;
}

bool SafetensorsText::Misplaced(absl::string_view what) {
  return FailHere(absl::StrCat(what, " is misplaced"));
}

bool SafetensorsText::FailHere(absl::string_view reason) {
  switch (place_) {
    case Place::kTensor:
    case Place::kNumbers:
      return Fail(absl::StrCat("tensor ", ShowName(name_), ", ",
                               field_.empty() ? "" : absl::StrCat(ShowName(field_), ": "), reason));
    case Place::kNotes:
      return Fail(absl::StrCat(kNotesName, ", ", ShowName(field_), ": ", reason));
    case Place::kNothing:
    case Place::kTop:
    case Place::kEnd:
      break;
  }
  return Fail(absl::StrCat("value of ", ShowName(name_), ": ", reason));
}

bool SafetensorsText::number_unsigned(uint64_t value) {
  if (place_ != Place::kNumbers) return Misplaced("a number");
  if (value > SafetensorsLimits::kNumber) return FailHere("a number is beyond 2^63 - 1");
  std::vector<uint64_t>& numbers = field_ == "shape" ? *shape_ : *offsets_;
  const size_t count_max = field_ == "shape" ? SafetensorsLimits::kExtents : 2;
  if (numbers.size() == count_max) return FailHere(absl::StrCat("more than ", count_max));
  numbers.push_back(value);
  return true;
}

bool SafetensorsText::string(std::string& text) {
  if (place_ == Place::kNotes) {
    notes_.emplace_back(std::move(field_), std::move(text));
    return true;
  }
  if (place_ != Place::kTensor || field_ != "dtype") return Misplaced("a text");
  type_ = SafetensorsTypeNamed(text);
  return type_.has_value() || FailHere(absl::StrCat("unknown type ", ShowName(text)));
}

bool SafetensorsText::start_object(size_t) {
  switch (place_) {
    case Place::kNothing:
      place_ = Place::kTop;
      return true;
    case Place::kTop:
      place_ = name_ == kNotesName ? Place::kNotes : Place::kTensor;
      field_.clear();
      return true;
    case Place::kNotes:
    case Place::kTensor:
    case Place::kNumbers:
    case Place::kEnd:
      break;
  }
  return Misplaced("an object");
}

bool SafetensorsText::key(std::string& text) {
  if (place_ == Place::kTop) {
    name_ = std::move(text);
    if (name_ == kNotesName) {
      return !std::exchange(had_notes_, true) || FailHere("the name occurs twice");
    }
    if (HasControlCharacter(name_)) return FailHere("the name has a control character");
    if (entries_.size() == SafetensorsLimits::kTensors) {
      return FailHere(absl::StrCat("more than ", SafetensorsLimits::kTensors, " tensors"));
    }
    return true;
  }
  field_ = std::move(text);
  if (place_ == Place::kNotes) {
    if (notes_.size() < SafetensorsLimits::kTensors) return true;
    return FailHere(absl::StrCat("more than ", SafetensorsLimits::kTensors, " texts"));
  }
  const bool is_second = (field_ == "dtype" && type_.has_value()) ||
                         (field_ == "shape" && shape_.has_value()) ||
                         (field_ == "data_offsets" && offsets_.has_value());
  if (is_second) return FailHere("the name occurs twice");
  if (field_ == "dtype" || field_ == "shape" || field_ == "data_offsets") return true;
  return FailHere("the format has no such field");
}

bool SafetensorsText::end_object() {
  if (place_ == Place::kTensor) return EndTensor();
  place_ = place_ == Place::kNotes ? Place::kTop : Place::kEnd;
  return true;
}

bool SafetensorsText::EndTensor() {
  field_.clear();
  if (!type_.has_value()) return FailHere("dtype is missing");
  if (!shape_.has_value()) return FailHere("shape is missing");
  if (!offsets_.has_value()) return FailHere("data_offsets are missing");
  if (offsets_->size() != 2) return FailHere("data_offsets are not two numbers");
  entries_.push_back({.tensor = {std::move(name_), *type_, *std::move(shape_)},
                      .begin = offsets_->front(),
                      .end = offsets_->back()});
  type_.reset();
  shape_.reset();
  offsets_.reset();
  place_ = Place::kTop;
  return true;
}

bool SafetensorsText::start_array(size_t) {
  if (place_ != Place::kTensor || field_ == "dtype") return Misplaced("an array");
  (field_ == "shape" ? shape_ : offsets_).emplace();
  place_ = Place::kNumbers;
  return true;
}

bool SafetensorsText::end_array() {
  place_ = Place::kTensor;
  return true;
}

}  // namespace covey
