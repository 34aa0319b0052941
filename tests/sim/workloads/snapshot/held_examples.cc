// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/held_examples.h"

#include <algorithm>
#include <utility>

#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kReportInterval = absl::Milliseconds(500);
// As long as no reply has come, only the scheduler knows what it gave.
constexpr absl::Duration kPatience = absl::Hours(24);

}  // namespace

std::vector<proto::WorkItem> HeldExamples::Take(uint64_t examples) {
  std::vector<proto::WorkItem> taken;
  while (examples > 0 && !held_.empty()) {
    proto::WorkItem& first = held_.front();
    proto::WorkItem& piece = taken.emplace_back(first);
    piece.set_count(std::min<uint64_t>(examples, first.count()));
    examples -= piece.count();
    held_examples_ -= piece.count();
    first.set_first(first.first() + piece.count());
    first.set_count(first.count() - piece.count());
    if (first.count() == 0) held_.pop_front();
  }
  return taken;
}

void HeldExamples::Finish(uint64_t step, const std::vector<proto::WorkItem>& items) {
  finished_step_ = step;
  for (const proto::WorkItem& item : items) finished_.emplace_back(item).set_step(step);
}

void HeldExamples::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  if (under_way_ || done_ || now < next_) return;
  under_way_ = true;
  proto::Envelope request;
  proto::WorkRequest& body = *request.mutable_work_request();
  body.set_name("examples");
  body.set_examples(plan_.examples);
  body.set_item_examples(plan_.item_examples);
  body.set_passes(plan_.passes);
  body.set_seed(plan_.data_seed);
  const bool needs_more = held_examples_ < 2 * plan_.step_examples;
  body.set_wanted(
      needs_more ? static_cast<uint32_t>(2 * plan_.step_examples / plan_.item_examples + 1) : 0);
  body.set_finished_step(finished_step_);
  reported_ = std::exchange(finished_, {});
  for (const proto::WorkItem& item : reported_) *body.add_finished() = item;
  client.control().Start(
      now, std::move(request), now + kPatience,
      [this](absl::Time at, const absl::Status& status, const proto::Envelope* reply, Outbox&) {
        Answered(at, status, reply);
      },
      outbox);
}

void HeldExamples::Answered(absl::Time now, const absl::Status& status,
                            const proto::Envelope* reply) {
  under_way_ = false;
  next_ = now + kReportInterval;
  if (!status.ok()) {
    if (!IsExpected(status)) violations_.Add(kSnapshot, status.ToString());
    finished_.insert(finished_.begin(), reported_.begin(), reported_.end());
    return;
  }
  for (const proto::WorkItem& item : reply->work_reply().items()) {
    held_.push_back(item);
    held_examples_ += item.count();
  }
  done_ = reply->work_reply().done();
}

}  // namespace covey::sim
