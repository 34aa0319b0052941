// SPDX-License-Identifier: Apache-2.0
#include "client/joined_result.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"

namespace covey::client {
namespace {

absl::Status Named(const std::string& table, const absl::Status& error) {
  const std::string name = absl::StrCat("table '", table, "'");
  return absl::StrContains(error.message(), name) ? error : Annotate(name, error);
}

void Join(const OperationResult& other, OperationResult& into) {
  into.version = std::min(into.version, other.version);
  into.staleness = std::max(into.staleness, other.staleness);
  into.age = std::max(into.age, other.age);
  into.samples = std::max(into.samples, other.samples);
  into.duplicate |= other.duplicate;
  into.discarded |= other.discarded;
  into.rows_refused += other.rows_refused;
  into.durable &= other.durable;
}

}  // namespace

JoinedResult::JoinedResult(std::vector<std::string> tables, Done done)
    : tables_(std::move(tables)), done_(std::move(done)), left_(tables_.size()) {
  COVEY_CHECK(left_ > 0);
}

void JoinedResult::End(size_t place, const OperationResult& result) {
  if (!result.status.ok() && (!failed_ || place < *failed_)) {
    failed_ = place;
    joined_.status = Named(tables_[place], result.status);
  }
  if (left_ == tables_.size()) {
    joined_.version = result.version;
    joined_.durable = true;
  }
  Join(result, joined_);
  if (--left_ == 0) done_(joined_);
}

}  // namespace covey::client
