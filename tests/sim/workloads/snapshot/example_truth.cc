// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/example_truth.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace covey::sim {

void ExampleTruth::Complain(uint64_t example, const std::string& what) {
  violations_.Add("snapshot_data", absl::StrCat("example ", example % examples_, " of pass ",
                                                example / examples_, " ", what));
}

std::vector<uint64_t> ExampleTruth::NumbersOf(const proto::WorkItem& item) const {
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < item.count(); ++i) {
    numbers.push_back(item.pass() * examples_ + item.first() + i);
  }
  return numbers;
}

void ExampleTruth::OnSend(absl::Time, const Message& message) {
  if (message.envelope.has_work_request()) {
    for (const proto::WorkItem& item : message.envelope.work_request().finished()) {
      for (const uint64_t example : NumbersOf(item)) reported_.insert(example);
    }
  }
  if (!message.envelope.has_work_reply() || !StatusOf(message).ok()) return;
  const proto::WorkReply& reply = message.envelope.work_reply();
  for (const proto::WorkItem& item : reply.items()) {
    for (const uint64_t example : NumbersOf(item)) {
      if (!finished_before_.contains(example)) continue;
      Complain(example, "is given out, and the snapshot says that it is finished");
    }
  }
  if (!reply.done()) return;
  for (uint64_t example = 0; example < examples_ * passes_; ++example) {
    if (finished_before_.contains(example) || reported_.contains(example)) continue;
    return Complain(example, "was never reported, and all is said to be finished");
  }
}

void ExampleTruth::Trained(NodeId node, GroupId group, Step step, const proto::WorkItem& item) {
  for (const uint64_t example : NumbersOf(item)) trained_[example].push_back({node, group, step});
}

std::set<uint64_t> ExampleTruth::FinishedIn(const proto::SnapshotManifest& manifest) const {
  std::set<uint64_t> finished;
  for (const proto::WorkLedger& ledger : manifest.state().work()) {
    for (uint64_t example = 0; example < ledger.pass() * examples_; ++example) {
      finished.insert(example);
    }
    for (const proto::WorkItem& item : ledger.finished()) {
      for (const uint64_t example : NumbersOf(item)) finished.insert(example);
    }
  }
  return finished;
}

bool ExampleTruth::IsAlive(NodeId node) const {
  const proto::ClusterView* view = published_();
  return view != nullptr &&
         std::any_of(view->nodes().begin(), view->nodes().end(), [node](const proto::Node& known) {
           return NodeId(known.id()) == node && known.state() == proto::Node::ALIVE;
         });
}

void ExampleTruth::Published(const proto::SnapshotManifest& manifest) {
  std::map<GroupId, Step> cut;
  for (const proto::CutStep& last : manifest.groups()) {
    cut.emplace(GroupId(last.group()), Step(last.step()));
  }
  const std::set<uint64_t> finished = FinishedIn(manifest);
  for (uint64_t example = 0; example < examples_ * passes_; ++example) {
    bool may_be = finished_before_.contains(example);
    bool must_be = may_be;
    for (const Training& training : trained_[example]) {
      const auto last = cut.find(training.group);
      const bool is_in_cut = last != cut.end() && training.step <= last->second;
      may_be = may_be || is_in_cut || last == cut.end();
      must_be = must_be || (is_in_cut && IsAlive(training.node));
    }
    const bool is = finished.contains(example);
    if (is ? may_be : !must_be) continue;
    return Complain(example,
                    absl::StrCat(is ? "is" : "is not", " finished in ", manifest.folder(),
                                 ", whose steps ", is ? "did not train" : "trained", " it"));
  }
}

void ExampleTruth::StartOver(const proto::SnapshotManifest& manifest) {
  finished_before_ = FinishedIn(manifest);
  reported_.clear();
  trained_.clear();
}

}  // namespace covey::sim
