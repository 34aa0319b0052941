// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// Who was given which examples, and who has reported them finished, by what the scheduler and the
// workers say to each other. Examples are numbered over all passes.
//
// Invariants:
//  - an example is reported finished, with an OK answer, once at most; unless who reports first was
//    slower than the lease and the scheduler has forgotten meanwhile who holds it, or did not know
//    it: so with what a node of before its restart gets first after it;
//  - what was reported finished, with an OK answer, is not given out any more;
//  - what somebody holds is given to nobody else, while the holder lives and the scheduler does;
//    with the same exceptions;
//  - all is finished only when every example has been reported.
class WorkLedger : public Observer {
 public:
  // `published`: the view that the scheduler has published last; not null when it sends something.
  WorkLedger(Violations& violations, uint64_t examples, uint64_t passes,
             std::function<const proto::ClusterView*()> published)
      : violations_(violations),
        examples_(examples),
        passes_(passes),
        published_(std::move(published)) {}

  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

  // The scheduler has begun a new life.
  void SchedulerStarted(absl::Time now) {
    restarts_.push_back(now);
    just_restarted_ = true;
  }
  uint64_t given_again() const { return given_again_; }

 private:
  struct Example {
    bool reported = false;
    // Nodes; 0 = none. The first whose report counts, and who was given it last.
    uint64_t finished_by = 0;
    uint64_t holder = 0;
    absl::Time first_given = absl::InfiniteFuture();
    // When it was first given in answer to a request that may have been a late copy.
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
  // The scheduler may have forgotten, by now, who had it.
  bool WasForgotten(absl::Time now, const Example& example) const;
  void Complain(uint64_t example, const std::string& what);

  // As the scheduler promises to keep what was given before it restarted, and the time that a
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
  // Of the newest restart: nobody has spoken to the scheduler since; the nodes of before, and of
  // each the first request for items since, and when it came.
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
