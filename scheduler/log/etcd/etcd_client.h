// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/log/etcd/etcd.pb.h"

namespace covey::scheduler {

// Calls an etcd cluster. Blocks: each call tries every endpoint once, for at most `attempt`,
// beginning with the one that replied last. Further retries are the caller's decision. Not
// thread-safe.
//
// UNAVAILABLE: no endpoint answers, or the cluster has no majority; whether a change took effect is
// unknown. Other statuses are etcd's own.
class EtcdClient {
 public:
  struct Options {
    std::vector<std::string> endpoints;  // "host:port", at least one
    absl::Duration attempt = absl::Milliseconds(800);
  };

  explicit EtcdClient(const Options& options);
  ~EtcdClient();

  absl::StatusOr<etcdserverpb::RangeResponse> Range(const etcdserverpb::RangeRequest& request);
  // With an answer to each operation. DATA_LOSS: some are absent, so it is no etcd.
  absl::StatusOr<etcdserverpb::TxnResponse> Txn(const etcdserverpb::TxnRequest& request);
  absl::Status Compact(int64_t revision);

  struct GrantedLease {
    int64_t id = 0;
    absl::Duration time_to_live;
  };
  absl::StatusOr<GrantedLease> Grant(absl::Duration time_to_live);
  // The remaining time of the lease; zero = it has expired.
  absl::StatusOr<absl::Duration> KeepAlive(int64_t lease);
  absl::Status Revoke(int64_t lease);

 private:
  struct Endpoint;

  absl::Status Call(absl::FunctionRef<absl::Status(Endpoint&)> attempt);

  const Options options_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  size_t current_ = 0;
};

}  // namespace covey::scheduler
