// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace covey {

// Why bytes from outside are no message for this loop.
enum class Refusal {
  kMalformed,    // wrong prelude, checksum, envelope or lengths; a failed handshake
  kNoKey,        // a plain message among sealed ones, or the reverse; the sender's key is not valid
  kNotGenuine,   // its seal does not fit: another process made it, or changed it
  kRepeated,     // it has come before, or is so late that it may have
  kMisdirected,  // for another loop, from another node than it says, or not for data ports
  kOtherJob,
};

inline constexpr std::array<absl::string_view, 6> kRefusalNames = {
    "malformed", "no_key", "not_genuine", "repeated", "misdirected", "other_job"};

// What the status of a decoder says; any code that does not stand for another reason is kMalformed.
inline Refusal RefusalOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return Refusal::kNoKey;
    case absl::StatusCode::kUnauthenticated:
      return Refusal::kNotGenuine;
    case absl::StatusCode::kAlreadyExists:
      return Refusal::kRepeated;
    case absl::StatusCode::kPermissionDenied:
      return Refusal::kMisdirected;
    default:
      return Refusal::kMalformed;
  }
}

// How many messages were refused, by reason.
class RefusalCounts {
 public:
  void Add(Refusal reason, uint64_t count = 1) { of_[static_cast<size_t>(reason)] += count; }
  void Add(const RefusalCounts& others) {
    for (size_t i = 0; i < of_.size(); ++i) of_[i] += others.of_[i];
  }

  // In the order of kRefusalNames.
  const std::array<uint64_t, kRefusalNames.size()>& all() const { return of_; }
  uint64_t of(Refusal reason) const { return of_[static_cast<size_t>(reason)]; }
  uint64_t total() const { return std::accumulate(of_.begin(), of_.end(), uint64_t{0}); }

 private:
  std::array<uint64_t, kRefusalNames.size()> of_ = {};
};

}  // namespace covey
