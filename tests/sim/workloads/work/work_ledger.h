// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Tracks which examples each worker was given and which were reported finished, according to the
// messages between scheduler and workers. Examples are numbered over all passes.
//
// Invariants:
//  - an example is reported finished, with an OK reply, at most once. Exceptions: its first
//    reporter was slower than the lease, and the scheduler has meanwhile forgotten the holder or
//    never knew it, as for the first items that a node from before a restart gets after it;
//  - an example that was reported finished, with an OK reply, is not given out again;
//  - an example that a node holds is given to no other node while the holder and the scheduler
//    live, with the same exceptions;
//  - the scheduler says that all is finished only when every example has been reported.
class WorkLedger : public Observer {
 public:
  // `published`: the newest view that the scheduler has published; not null when the scheduler
  // sends.
  WorkLedger(Violations& violations, uint64_t examples, uint64_t passes,
             std::function<const proto::ClusterView*()> published)
      : violations_(violations),
        examples_(examples),
        passes_(passes),
        published_(std::move(published)) {}

  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

  // The scheduler has restarted.
  void SchedulerStarted(absl::Time now) {
    restarts_.push_back(now);
    just_restarted_ = true;
  }
  uint64_t given_again() const { return given_again_; }

 private:
  struct Example {
    bool reported = false;
    // Nodes; 0 = none. The first whose report counted, and the last that was given the example.
    uint64_t finished_by = 0;
    uint64_t holder = 0;
    absl::Time first_given = absl::InfiniteFuture();
    // When it was first given in reply to a request that may have been a late copy.
    absl::Time first_doubted = absl::InfiniteFuture();
  };
  using RequestKey = std::pair<uint64_t, uint64_t>;  // node and request id

  void NoteRequest(const Message& message);
  void NoteReply(absl::Time now, const Message& message);
  void Finish(absl::Time now, const RequestKey& key, uint64_t example);
  void Give(absl::Time now, const RequestKey& key, uint64_t example);
  bool HasDeparted(uint64_t node) const;
  template <typename Work>
  void ForEach(const proto::WorkItem& item, Work work);
  // Whether the scheduler may by now have forgotten the holder.
  bool WasForgotten(absl::Time now, const Example& example) const;
  void Complain(uint64_t example, const std::string& what);

  // How long the scheduler keeps an assignment from before its restart, plus the time that a
  // message takes.
  static constexpr absl::Duration kLease = absl::Seconds(14);

  Violations& violations_;
  const uint64_t examples_;
  const uint64_t passes_;
  const std::function<const proto::ClusterView*()> published_;
  std::map<uint64_t, Example> all_;
  std::map<RequestKey, std::vector<proto::WorkItem>> finished_;
  std::map<RequestKey, std::vector<proto::WorkItem>> returned_;
  std::set<RequestKey> answered_;
  std::vector<absl::Time> restarts_;  // of the scheduler
  // State since the newest restart: whether no node has contacted the scheduler yet; the nodes from
  // before; and for each of them the first request for items, with its time.
  struct Asked {
    uint64_t request_id = 0;
    absl::Time at;
  };
  bool just_restarted_ = false;
  std::set<uint64_t> nodes_before_;
  std::map<uint64_t, Asked> first_asked_;
  uint64_t given_again_ = 0;
};

}  // namespace covey::sim
