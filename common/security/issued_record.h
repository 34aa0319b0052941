// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

namespace covey {

// The certificates of an authority that have not expired. Each is in use, unless a later one in the
// same folder has replaced it: it is valid all the same, and can be taken back. A text file beside
// the authority's key, a line for each:
//
//   SERIAL ROOT-SERIAL UNTIL URI [replaced]
//
// serials in hexadecimal, UNTIL as 2026-11-26T14:00:00Z. A value; in order of issue.
class IssuedRecord {
 public:
  struct Entry {
    std::string serial;
    std::string root;  // serial of the root that signed it
    absl::Time until;
    Identity identity;
    bool is_replaced = false;
  };

  // INVALID_ARGUMENT: the number of the first line that is malformed.
  static absl::StatusOr<IssuedRecord> Parse(absl::string_view text);
  std::string Text() const;

  void Add(Entry entry) { entries_.push_back(std::move(entry)); }
  // Nothing happens when there is none with this serial.
  void Remove(absl::string_view serial);
  void MarkReplaced(absl::string_view serial);
  void RemoveExpired(absl::Time now);
  // Those of a root that nobody trusts any longer.
  void RemoveSignedBy(absl::string_view root);
  const std::vector<Entry>& entries() const { return entries_; }
  // Those in use.
  std::vector<Entry> InUse() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace covey
