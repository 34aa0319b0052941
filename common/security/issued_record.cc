// SPDX-License-Identifier: Apache-2.0
#include "common/security/issued_record.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/security/certificate.h"

namespace covey {
namespace {

constexpr absl::string_view kReplaced = "replaced";

absl::StatusOr<IssuedRecord::Entry> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  IssuedRecord::Entry entry;
  std::string why;
  entry.is_replaced = words.size() == 5 && words[4] == kReplaced;
  if ((words.size() != 4 && !entry.is_replaced) ||
      !absl::ParseTime(kUtcFormat, words[2], &entry.until, &why)) {
    return absl::InvalidArgumentError("is not SERIAL ROOT-SERIAL UNTIL URI [replaced]");
  }
  entry.serial = std::string(words[0]);
  entry.root = std::string(words[1]);
  COVEY_ASSIGN_OR_RETURN(entry.identity, ParseIdentity(words[3]));
  return entry;
}

}  // namespace

absl::StatusOr<IssuedRecord> IssuedRecord::Parse(absl::string_view text) {
  IssuedRecord record;
  absl::ConsumeSuffix(&text, "\n");
  if (text.empty()) return record;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    auto entry = ParseLine(line);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", entry.status().message()));
    }
    record.Add(*std::move(entry));
  }
  return record;
}

std::string IssuedRecord::Text() const {
  std::string text;
  for (const Entry& entry : entries_) {
    absl::StrAppend(&text, entry.serial, " ", entry.root, " ", FormatUtc(entry.until), " ",
                    UriOf(entry.identity), entry.is_replaced ? " replaced\n" : "\n");
  }
  return text;
}

void IssuedRecord::Remove(absl::string_view serial) {
  std::erase_if(entries_, [serial](const Entry& entry) { return entry.serial == serial; });
}

void IssuedRecord::MarkReplaced(absl::string_view serial) {
  for (Entry& entry : entries_) entry.is_replaced = entry.is_replaced || entry.serial == serial;
}

std::vector<IssuedRecord::Entry> IssuedRecord::InUse() const {
  std::vector<Entry> in_use;
  for (const Entry& entry : entries_) {
    if (!entry.is_replaced) in_use.push_back(entry);
  }
  return in_use;
}

void IssuedRecord::RemoveSignedBy(absl::string_view root) {
  std::erase_if(entries_, [root](const Entry& entry) { return entry.root == root; });
}

void IssuedRecord::RemoveExpired(absl::Time now) {
  std::erase_if(entries_, [now](const Entry& entry) { return entry.until <= now; });
}

}  // namespace covey
