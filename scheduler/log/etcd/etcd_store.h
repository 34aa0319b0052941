// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/log.pb.h"
#include "scheduler/log/etcd/etcd_client.h"

namespace covey::scheduler {

// The scheduler's log in an etcd cluster, and the election of the scheduler that may write it. Keys
// below the prefix:
//
//   leader           address of the scheduler that leads; dies with its lease
//   head             "ID BYTES CHUNKS": which record is the newest
//   record/ID/NNNN   its bytes, as in scheduler_log.h, cut below etcd's limit for one request
//
// A record is written in pieces beside the previous one; then one transaction moves the head and
// deletes the old pieces. Every transaction demands that `leader` is still the key that this
// process has created (by its create revision), and that the head is as this process has left it.
// So a leader that was replaced changes nothing more, however late its requests arrive.
//
// Overwritten revisions are compacted from time to time, for the whole etcd cluster.
//
// Blocks, as EtcdClient. Not thread-safe.
//
// UNAVAILABLE: etcd does not reply; retry the same call. ABORTED: this scheduler does not lead, and
// never will again with this object's lease. DATA_LOSS: the stored keys are not a log of this
// program.
class EtcdStore {
 public:
  struct Options {
    std::vector<std::string> endpoints;
    // "covey/JOB"
    std::string prefix;
    // The address of this scheduler, which other schedulers report while it leads.
    std::string address;
    // Lease term: a leader that is dead or cut off is replaced after this duration.
    absl::Duration lease = absl::Seconds(2);
    size_t chunk_bytes = 1 << 20;
    uint64_t compact_after_bytes = 64 << 20;
  };

  // The time for an unreachable endpoint is a quarter of the lease term, so the next one is tried
  // in time.
  explicit EtcdStore(const Options& options)
      : options_(options),
        client_({.endpoints = options.endpoints, .attempt = options.lease / 4}) {}

  // Takes the lead if no scheduler has it, and returns nothing; otherwise returns the leader's
  // address.
  absl::StatusOr<std::optional<std::string>> Campaign();
  // The following methods are for the leader. Recover returns the newest record; nothing = there is
  // none. It cleans up after a former leader.
  absl::StatusOr<std::optional<proto::LogRecord>> Recover();
  // Makes `record` (EncodeRecord) the newest. After UNAVAILABLE only the same record may follow.
  absl::Status Append(const std::string& record);
  // Renews the lease.
  absl::Status KeepAlive();
  // Lets another scheduler take the lead at once.
  void Resign();

  // By the clock of this machine; never later than etcd's own expiry, even if this clock is
  // slower by one part in 16.
  absl::Time lease_until() const { return lease_until_; }
  // When the lease has to be renewed.
  absl::Time next_keep_alive() const;

 private:
  // etcd has granted this term after it was asked at that time.
  void SetLease(absl::Time asked, absl::Duration term);
  std::string Key(absl::string_view name) const;
  std::string RecordKey(absl::string_view id, absl::string_view rest) const;
  // A transaction that has no effect unless this process leads.
  etcdserverpb::TxnRequest Guarded() const;
  absl::Status Overtaken(const etcdserverpb::ResponseOp& leader) const;
  absl::Status WriteChunk(const std::string& id, size_t index, const std::string& bytes);
  absl::Status MoveHead(const std::string& id, const std::string& head);
  absl::Status Sweep();
  void CompactIfDue(uint64_t bytes, int64_t revision);

  const Options options_;
  EtcdClient client_;
  int64_t lease_ = 0;
  absl::Time lease_until_ = absl::InfinitePast();
  absl::Duration lease_time_;
  // Create revision of our leader key; 0 = this process does not lead.
  int64_t revision_ = 0;
  // Value of /head as this process knows it, "" = none, and the id in it.
  std::string head_;
  std::string head_id_;
  // Id of the record being appended.
  uint64_t sequence_ = 0;
  uint64_t uncompacted_bytes_ = 0;
};

}  // namespace covey::scheduler
