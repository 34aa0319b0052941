// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/snapshot.pb.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Which examples were trained in which steps, as the programs know. Examples are numbered over all
// passes.
//
// Invariants:
//  - the examples that are finished in a snapshot are those trained in its steps: each of them was
//    trained in a step up to the cut, or by a group that had ended; and each that a live node has
//    trained in such a step is finished;
//  - a job gives out no example that is finished in the snapshot that it continues, and says that
//    all are finished only when each was finished there or is reported now.
//
// Actor-confined.
class ExampleTruth : public Observer {
 public:
  // `published`: the newest view that the scheduler has published; null when it does not run.
  ExampleTruth(Violations& violations, uint64_t examples, uint64_t passes,
               std::function<const proto::ClusterView*()> published)
      : violations_(violations),
        examples_(examples),
        passes_(passes),
        published_(std::move(published)) {}

  void OnSend(absl::Time now, const Message& message) override;

  // The node has trained the item in a step of the group that has succeeded.
  void Trained(NodeId node, GroupId group, Step step, const proto::WorkItem& item);
  // Checks a snapshot that has just been published.
  void Published(const proto::SnapshotManifest& manifest);
  // The next job begins, from this snapshot.
  void StartOver(const proto::SnapshotManifest& manifest);

  uint64_t finished_before() const { return finished_before_.size(); }

 private:
  struct Training {
    NodeId node;
    GroupId group;
    Step step;
  };

  std::vector<uint64_t> NumbersOf(const proto::WorkItem& item) const;
  std::set<uint64_t> FinishedIn(const proto::SnapshotManifest& manifest) const;
  bool IsAlive(NodeId node) const;
  void Complain(uint64_t example, const std::string& what);

  Violations& violations_;
  const uint64_t examples_;
  const uint64_t passes_;
  const std::function<const proto::ClusterView*()> published_;
  // Of the present job.
  std::map<uint64_t, std::vector<Training>> trained_;
  std::set<uint64_t> reported_;
  std::set<uint64_t> finished_before_;
};

}  // namespace covey::sim
