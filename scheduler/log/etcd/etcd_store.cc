// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/etcd/etcd_store.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::ResponseOp;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;

// The character after '/', so that "a/" to "a0" is everything below "a".
constexpr char kBehindSlash[] = "0";

void CompareCreated(const std::string& key, int64_t revision, TxnRequest& transaction) {
  Compare& compare = *transaction.add_compare();
  compare.set_key(key);
  compare.set_target(Compare::CREATE);
  compare.set_result(Compare::EQUAL);
  compare.set_create_revision(revision);
}

void CompareValue(const std::string& key, const std::string& value, TxnRequest& transaction) {
  if (value.empty()) return CompareCreated(key, 0, transaction);
  Compare& compare = *transaction.add_compare();
  compare.set_key(key);
  compare.set_target(Compare::VALUE);
  compare.set_result(Compare::EQUAL);
  compare.set_value(value);
}

void Put(const std::string& key, const std::string& value, TxnRequest& transaction) {
  etcdserverpb::PutRequest& put = *transaction.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(value);
}

void Delete(const std::string& from, const std::string& to, TxnRequest& transaction) {
  auto& range = *transaction.add_success()->mutable_request_delete_range();
  range.set_key(from);
  range.set_range_end(to);
}

// The value of a single requested key; nothing = there is no such key.
const etcdserverpb::KeyValue* Found(const ResponseOp& response) {
  const auto& range = response.response_range();
  return range.kvs_size() == 0 ? nullptr : &range.kvs(0);
}

struct Head {
  std::string id;
  uint64_t bytes = 0;
  uint64_t chunks = 0;
};

std::optional<Head> ParseHead(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  Head head;
  if (parts.size() != 3 || parts[0].empty() || !absl::SimpleAtoi(parts[1], &head.bytes) ||
      !absl::SimpleAtoi(parts[2], &head.chunks)) {
    return std::nullopt;
  }
  head.id = parts[0];
  return head;
}

}  // namespace

std::string EtcdStore::Key(absl::string_view name) const {
  return absl::StrCat(options_.prefix, "/", name);
}

std::string EtcdStore::RecordKey(absl::string_view id, absl::string_view rest) const {
  return absl::StrCat(options_.prefix, "/record/", id, rest);
}

void EtcdStore::SetLease(absl::Time asked, absl::Duration term) {
  lease_time_ = term;
  lease_until_ = asked + term - term / 16;
}

absl::Time EtcdStore::next_keep_alive() const { return lease_until_ - lease_time_ * 2 / 3; }

absl::StatusOr<std::optional<std::string>> EtcdStore::Campaign() {
  etcdserverpb::RangeRequest look;
  look.set_key(Key("leader"));
  COVEY_ASSIGN_OR_RETURN(const etcdserverpb::RangeResponse found, client_.Range(look));
  if (found.kvs_size() > 0) return std::optional<std::string>(found.kvs(0).value());

  const absl::Time asked = MonotonicNow();
  COVEY_ASSIGN_OR_RETURN(const EtcdClient::GrantedLease lease, client_.Grant(options_.lease));
  TxnRequest transaction;
  CompareCreated(Key("leader"), 0, transaction);
  Put(Key("leader"), options_.address, transaction);
  transaction.mutable_success(0)->mutable_request_put()->set_lease(lease.id);
  *transaction.add_failure()->mutable_request_range() = look;
  const absl::StatusOr<TxnResponse> response = client_.Txn(transaction);
  if (!response.ok() || !response->succeeded()) {
    // If the key was made after all, revoking the lease deletes it.
    if (const absl::Status status = client_.Revoke(lease.id); !status.ok()) {
      LogWarning("lease_not_revoked", {{"reason", status.message()}});
    }
    if (!response.ok()) return response.status();
    const auto* leader = response->responses_size() == 0 ? nullptr : Found(response->responses(0));
    return std::optional<std::string>(leader == nullptr ? "" : leader->value());
  }
  lease_ = lease.id;
  SetLease(asked, lease.time_to_live);
  revision_ = response->header().revision();
  head_.clear();
  head_id_.clear();
  sequence_ = 0;
  return std::optional<std::string>();
}

TxnRequest EtcdStore::Guarded() const {
  COVEY_CHECK(revision_ != 0);
  TxnRequest transaction;
  CompareCreated(Key("leader"), revision_, transaction);
  transaction.add_failure()->mutable_request_range()->set_key(Key("leader"));
  return transaction;
}

absl::Status EtcdStore::Overtaken(const ResponseOp& leader) const {
  const etcdserverpb::KeyValue* key = Found(leader);
  if (key != nullptr && key->create_revision() == revision_) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "this scheduler has lost the lead", key == nullptr ? "" : " to ",
      key == nullptr ? "" : key->value(),
      ": its lease in etcd ran out while it stood still or could not reach etcd; start it again"));
}

absl::StatusOr<std::optional<proto::LogRecord>> EtcdStore::Recover() {
  TxnRequest transaction = Guarded();
  transaction.add_success()->mutable_request_range()->set_key(Key("head"));
  auto& pieces = *transaction.add_success()->mutable_request_range();
  pieces.set_key(Key("record/"));
  pieces.set_range_end(absl::StrCat(Key("record"), kBehindSlash));
  COVEY_ASSIGN_OR_RETURN(const TxnResponse response, client_.Txn(transaction));
  if (!response.succeeded()) return Overtaken(response.responses(0));

  std::optional<proto::LogRecord> record;
  if (const etcdserverpb::KeyValue* stored = Found(response.responses(0))) {
    const std::optional<Head> head = ParseHead(stored->value());
    std::string bytes;
    uint64_t chunks = 0;
    for (const auto& piece : response.responses(1).response_range().kvs()) {
      if (!head || !absl::StartsWith(piece.key(), RecordKey(head->id, "/"))) continue;
      bytes += piece.value();
      ++chunks;
    }
    if (!head || bytes.size() != head->bytes || chunks != head->chunks) {
      return absl::DataLossError(absl::StrCat(
          Key("head"), " in etcd says '", stored->value(), "', but ", bytes.size(), " bytes in ",
          chunks, " pieces are there: restore etcd from a copy, or name another prefix"));
    }
    COVEY_ASSIGN_OR_RETURN(
        RecoveredLog log,
        RecoverLog({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    if (!log.newest) {
      return absl::DataLossError(absl::StrCat(
          "the record that ", Key("head"),
          " in etcd names is damaged: restore etcd from a copy, or name another prefix"));
    }
    head_ = stored->value();
    head_id_ = head->id;
    record = std::move(log.newest);
  }
  COVEY_RETURN_IF_ERROR(Sweep());
  return record;
}

absl::Status EtcdStore::Sweep() {
  TxnRequest transaction = Guarded();
  if (head_id_.empty()) {
    Delete(Key("record/"), absl::StrCat(Key("record"), kBehindSlash), transaction);
  } else {
    Delete(Key("record/"), RecordKey(head_id_, "/"), transaction);
    Delete(RecordKey(head_id_, kBehindSlash), absl::StrCat(Key("record"), kBehindSlash),
           transaction);
  }
  COVEY_ASSIGN_OR_RETURN(const TxnResponse response, client_.Txn(transaction));
  return response.succeeded() ? absl::OkStatus() : Overtaken(response.responses(0));
}

absl::Status EtcdStore::Append(const std::string& record) {
  const std::string id = absl::StrCat(revision_, "-", sequence_ + 1);
  size_t chunks = 0;
  for (size_t at = 0; at < record.size(); at += options_.chunk_bytes) {
    COVEY_RETURN_IF_ERROR(WriteChunk(id, chunks++, record.substr(at, options_.chunk_bytes)));
    // A long record must not let the lease expire.
    if (MonotonicNow() >= next_keep_alive()) COVEY_RETURN_IF_ERROR(KeepAlive());
  }
  COVEY_RETURN_IF_ERROR(MoveHead(id, absl::StrCat(id, " ", record.size(), " ", chunks)));
  ++sequence_;
  return absl::OkStatus();
}

absl::Status EtcdStore::WriteChunk(const std::string& id, size_t index, const std::string& bytes) {
  TxnRequest transaction = Guarded();
  Put(RecordKey(id, absl::StrFormat("/%04d", index)), bytes, transaction);
  COVEY_ASSIGN_OR_RETURN(const TxnResponse response, client_.Txn(transaction));
  if (!response.succeeded()) return Overtaken(response.responses(0));
  CompactIfDue(bytes.size(), response.header().revision());
  return absl::OkStatus();
}

absl::Status EtcdStore::MoveHead(const std::string& id, const std::string& head) {
  TxnRequest transaction = Guarded();
  CompareValue(Key("head"), head_, transaction);
  transaction.add_failure()->mutable_request_range()->set_key(Key("head"));
  Put(Key("head"), head, transaction);
  if (!head_id_.empty()) {
    Delete(RecordKey(head_id_, "/"), RecordKey(head_id_, kBehindSlash), transaction);
  }
  COVEY_ASSIGN_OR_RETURN(const TxnResponse response, client_.Txn(transaction));
  if (!response.succeeded()) {
    COVEY_RETURN_IF_ERROR(Overtaken(response.responses(0)));
    // An earlier attempt, whose reply was lost, may have succeeded.
    const etcdserverpb::KeyValue* stored = Found(response.responses(1));
    if (stored == nullptr || stored->value() != head) {
      return absl::DataLossError(absl::StrCat(
          Key("head"), " in etcd is '", stored == nullptr ? "" : stored->value(), "', not '", head_,
          "': another process writes there; give each job a prefix of its own"));
    }
  }
  head_ = head;
  head_id_ = id;
  return absl::OkStatus();
}

void EtcdStore::CompactIfDue(uint64_t bytes, int64_t revision) {
  uncompacted_bytes_ += bytes;
  if (uncompacted_bytes_ < options_.compact_after_bytes) return;
  uncompacted_bytes_ = 0;
  const absl::Status status = client_.Compact(revision);
  // OutOfRange means that another client has compacted even more, which is fine.
  if (!status.ok() && !absl::IsOutOfRange(status)) {
    LogWarning("etcd_not_compacted", {{"reason", status.message()}});
  }
}

absl::Status EtcdStore::KeepAlive() {
  const absl::Time asked = MonotonicNow();
  COVEY_ASSIGN_OR_RETURN(const absl::Duration left, client_.KeepAlive(lease_));
  if (left <= absl::ZeroDuration()) {
    return absl::AbortedError(
        "this scheduler's lease in etcd has run out while it stood still or could not reach etcd; "
        "another may lead: start it again");
  }
  SetLease(asked, left);
  return absl::OkStatus();
}

void EtcdStore::Resign() {
  if (revision_ == 0) return;
  revision_ = 0;
  if (const absl::Status status = client_.Revoke(lease_); !status.ok()) {
    LogWarning("lease_not_revoked", {{"reason", status.message()}});
  }
}

}  // namespace covey::scheduler
