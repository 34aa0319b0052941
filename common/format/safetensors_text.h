// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/format/safetensors_tensor.h"

namespace covey {

// `name` for messages: in quotation marks, cut where it is long, control characters escaped. Pure.
std::string ShowName(absl::string_view name);

// A tensor as the JSON text describes it.
struct SafetensorsEntry {
  SafetensorsTensor tensor;
  // Into the data.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Inside of the reader: takes the JSON text value by value, and stops at the first that does not
// belong there. It builds no tree, so deep nesting costs nothing, and a name that occurs twice is
// seen.
//
//   kNothing ── { ──▶ kTop ── "__metadata__": { ──▶ kNotes ── } ──▶ kTop
//                      │  ── name: { ──▶ kTensor ── "shape", "data_offsets": [ ──▶ kNumbers
//                      }                  │ ◀──────────────────────── ] ─────────────┘
//                      ▼                  } ──▶ kTop
//                    kEnd
//
// Each callback returns whether to go on.
class SafetensorsText final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Called once. The rest is valid afterwards.
  void Read(absl::string_view text) { nlohmann::json::sax_parse(text.begin(), text.end(), this); }

  // OK: the text has the form of a head.
  const absl::Status& status() const { return status_; }
  // As in the text; names may occur twice.
  std::vector<SafetensorsEntry>& entries() { return entries_; }
  SafetensorsNotes& notes() { return notes_; }

  bool null() override { return Misplaced("null"); }
  bool boolean(bool) override { return Misplaced("a boolean"); }
  bool number_integer(int64_t) override { return Misplaced("a number below 0, or -0"); }
  bool number_float(double, const std::string&) override {
    return Misplaced("a number that is not written as an integer, or beyond 2^64");
  }
  bool binary(nlohmann::json::binary_t&) override { return Misplaced("binary data"); }
  bool number_unsigned(uint64_t value) override;
  bool string(std::string& text) override;
  bool start_object(size_t) override;
  bool key(std::string& text) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override;

 private:
  enum class Place { kNothing, kTop, kNotes, kTensor, kNumbers, kEnd };

  bool Fail(absl::string_view reason);
  // Fails, and says in which value.
  bool FailHere(absl::string_view reason);
  // Fails: `what` was found in place of something else.
  bool Misplaced(absl::string_view what);
  bool EndTensor();

  absl::Status status_;
  std::vector<SafetensorsEntry> entries_;
  SafetensorsNotes notes_;
  bool had_notes_ = false;
  Place place_ = Place::kNothing;
  // The name whose value is read in kTop and below, and the one inside this value.
  std::string name_;
  std::string field_;
  // Of the tensor that is read.
  std::optional<SafetensorsType> type_;
  std::optional<std::vector<uint64_t>> shape_;
  std::optional<std::vector<uint64_t>> offsets_;
};

}  // namespace covey
