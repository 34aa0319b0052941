// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "scheduler/log/etcd/etcd.grpc.pb.h"

namespace covey::scheduler {

// An in-memory etcd behind a real socket, with the features that EtcdStore uses: transactions,
// revisions, and leases that a test ends. Replies can be lost in flight. Thread-safe.
class FakeEtcd {
 public:
  FakeEtcd() : values_(*this), leases_(*this) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&values_);
    builder.RegisterService(&leases_);
    server_ = builder.BuildAndStart();
  }
  ~FakeEtcd() { Stop(); }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
    server_.reset();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // All leases end, and with them their keys.
  void EndLeases() {
    MutexLock lock(mutex_);
    std::erase_if(keys_, [](const auto& entry) { return entry.second.lease() != 0; });
    living_.clear();
  }
  // Loses the reply to the `count`-th transaction from now, after the transaction was done.
  void LoseAnswer(int count) {
    MutexLock lock(mutex_);
    lose_in_ = count;
  }
  // From now on answers to transactions say nothing of their operations, as no etcd does.
  void LeaveOutOperations() {
    MutexLock lock(mutex_);
    leaves_out_operations_ = true;
  }
  // Does a transaction as if it had arrived now.
  etcdserverpb::TxnResponse Do(const etcdserverpb::TxnRequest& request) {
    MutexLock lock(mutex_);
    return DoLocked(request);
  }
  void Set(const std::string& key, const std::string& value) {
    MutexLock lock(mutex_);
    ++revision_;
    PutLocked(key, value, 0);
  }
  std::map<std::string, std::string> Keys() {
    MutexLock lock(mutex_);
    std::map<std::string, std::string> keys;
    for (const auto& [key, value] : keys_) keys[key] = value.value();
    return keys;
  }
  // The transactions that it has done, oldest first.
  std::vector<etcdserverpb::TxnRequest> transactions() {
    MutexLock lock(mutex_);
    return transactions_;
  }
  int64_t compacted() {
    MutexLock lock(mutex_);
    return compacted_;
  }

 private:
  class Values : public etcdserverpb::KV::Service {
   public:
    explicit Values(FakeEtcd& etcd) : etcd_(etcd) {}
    grpc::Status Range(grpc::ServerContext*, const etcdserverpb::RangeRequest* request,
                       etcdserverpb::RangeResponse* response) override {
      MutexLock lock(etcd_.mutex_);
      *response = etcd_.RangeLocked(*request);
      return grpc::Status::OK;
    }
    grpc::Status Txn(grpc::ServerContext*, const etcdserverpb::TxnRequest* request,
                     etcdserverpb::TxnResponse* response) override {
      MutexLock lock(etcd_.mutex_);
      *response = etcd_.DoLocked(*request);
      if (etcd_.leaves_out_operations_) response->clear_responses();
      if (etcd_.lose_in_ > 0 && --etcd_.lose_in_ == 0) {
        return {grpc::StatusCode::UNAVAILABLE, "connection lost"};
      }
      return grpc::Status::OK;
    }
    grpc::Status Compact(grpc::ServerContext*, const etcdserverpb::CompactionRequest* request,
                         etcdserverpb::CompactionResponse*) override {
      MutexLock lock(etcd_.mutex_);
      etcd_.compacted_ = request->revision();
      return grpc::Status::OK;
    }

   private:
    FakeEtcd& etcd_;
  };

  class Leases : public etcdserverpb::Lease::Service {
   public:
    explicit Leases(FakeEtcd& etcd) : etcd_(etcd) {}
    grpc::Status LeaseGrant(grpc::ServerContext*, const etcdserverpb::LeaseGrantRequest* request,
                            etcdserverpb::LeaseGrantResponse* response) override {
      MutexLock lock(etcd_.mutex_);
      response->set_id(++etcd_.last_lease_);
      response->set_ttl(request->ttl());
      etcd_.living_[response->id()] = request->ttl();
      return grpc::Status::OK;
    }
    grpc::Status LeaseRevoke(grpc::ServerContext*, const etcdserverpb::LeaseRevokeRequest* request,
                             etcdserverpb::LeaseRevokeResponse*) override {
      MutexLock lock(etcd_.mutex_);
      if (etcd_.living_.erase(request->id()) == 0) {
        return {grpc::StatusCode::NOT_FOUND, "no such lease"};
      }
      std::erase_if(etcd_.keys_,
                    [&](const auto& entry) { return entry.second.lease() == request->id(); });
      return grpc::Status::OK;
    }
    grpc::Status LeaseKeepAlive(
        grpc::ServerContext*,
        grpc::ServerReaderWriter<etcdserverpb::LeaseKeepAliveResponse,
                                 etcdserverpb::LeaseKeepAliveRequest>* stream) override {
      etcdserverpb::LeaseKeepAliveRequest request;
      while (stream->Read(&request)) {
        etcdserverpb::LeaseKeepAliveResponse response;
        response.set_id(request.id());
        {
          MutexLock lock(etcd_.mutex_);
          const auto at = etcd_.living_.find(request.id());
          response.set_ttl(at == etcd_.living_.end() ? 0 : at->second);
        }
        stream->Write(response);
      }
      return grpc::Status::OK;
    }

   private:
    FakeEtcd& etcd_;
  };

  void PutLocked(const std::string& key, const std::string& value, int64_t lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    etcdserverpb::KeyValue& stored = keys_[key];
    if (stored.create_revision() == 0) stored.set_create_revision(revision_);
    stored.set_key(key);
    stored.set_value(value);
    stored.set_mod_revision(revision_);
    stored.set_lease(lease);
  }
  etcdserverpb::RangeResponse RangeLocked(const etcdserverpb::RangeRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    etcdserverpb::RangeResponse response;
    for (auto at = keys_.lower_bound(request.key()); at != keys_.end(); ++at) {
      if (request.range_end().empty() ? at->first != request.key()
                                      : at->first >= request.range_end()) {
        break;
      }
      *response.add_kvs() = at->second;
    }
    response.mutable_header()->set_revision(revision_);
    return response;
  }
  bool HoldsLocked(const etcdserverpb::Compare& compare) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto at = keys_.find(compare.key());
    if (compare.target() == etcdserverpb::Compare::CREATE) {
      return compare.create_revision() == (at == keys_.end() ? 0 : at->second.create_revision());
    }
    return at != keys_.end() && at->second.value() == compare.value();
  }
  etcdserverpb::TxnResponse DoLocked(const etcdserverpb::TxnRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    transactions_.push_back(request);
    etcdserverpb::TxnResponse response;
    bool holds = true;
    for (const auto& compare : request.compare()) holds = holds && HoldsLocked(compare);
    response.set_succeeded(holds);
    if (holds) ++revision_;
    for (const auto& operation : holds ? request.success() : request.failure()) {
      etcdserverpb::ResponseOp& result = *response.add_responses();
      if (operation.has_request_range()) {
        *result.mutable_response_range() = RangeLocked(operation.request_range());
      } else if (operation.has_request_put()) {
        const auto& put = operation.request_put();
        PutLocked(put.key(), put.value(), put.lease());
        result.mutable_response_put();
      } else {
        const auto& range = operation.request_delete_range();
        keys_.erase(keys_.lower_bound(range.key()), keys_.lower_bound(range.range_end()));
        result.mutable_response_delete_range();
      }
    }
    response.mutable_header()->set_revision(revision_);
    return response;
  }

  Values values_;
  Leases leases_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  std::map<std::string, etcdserverpb::KeyValue> keys_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, int64_t> living_ ABSL_GUARDED_BY(mutex_);  // lease to its seconds
  std::vector<etcdserverpb::TxnRequest> transactions_ ABSL_GUARDED_BY(mutex_);
  bool leaves_out_operations_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t last_lease_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t compacted_ ABSL_GUARDED_BY(mutex_) = 0;
  int lose_in_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace covey::scheduler
