// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/data_dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"
#include "scheduler/work/request_check.h"

namespace covey::scheduler {
namespace {

// When a worker that got no items, because all are leased, should ask again.
constexpr uint32_t kAskAgainMs = 50;
// The same for a worker that is to return items: others, which wait, come first.
constexpr uint32_t kReturnedAskAgainMs = 4 * kAskAgainMs;

std::string Describe(const proto::WorkItem& item) {
  return absl::StrCat("examples [", item.first(), ", ", item.first() + item.count(), ") of pass ",
                      item.pass() + 1);
}

}  // namespace

void DataDispatcher::Start(absl::Time now, absl::Time heard_by) {
  const absl::Time named_by = std::max(now + kLease, heard_by);
  first_newcomer_ = NodeId(state_.record().next_node());
  for (const proto::WorkLedger& record : state_.record().work()) {
    Dataset dataset{.ledger = ExampleLedger(record, now + kLease),
                    .passes = MemberPasses(record.passes(), first_newcomer_, named_by),
                    .is_recovered = true};
    dataset.finished_recorded = dataset.ledger.finished();
    Emplace(record.name(), std::move(dataset));
  }
}

void DataDispatcher::Emplace(const std::string& name, Dataset dataset) {
  const auto added = datasets_.emplace(name, std::move(dataset)).first;
  cut_.AddDataset(name, added->second.ledger);
}

absl::Status DataDispatcher::Check(const proto::WorkRequest& request) const {
  COVEY_RETURN_IF_ERROR(CheckAlone(request));
  const std::string& name = request.name();
  const proto::WorkLedger* record = FindRecord(name);
  if (record == nullptr) {
    if (request.finished_size() + request.returned_size() > 0) {
      return Refusal(name, "this job never gave anything of it to any worker");
    }
    if (datasets_.size() < kWorkLedgersMax) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "work '", name, "': the job has ", kWorkLedgersMax, " data sets, the most it can"));
  }
  COVEY_RETURN_IF_ERROR(CheckSameDescription(request, *record));
  const ExampleLedger& ledger = datasets_.at(name).ledger;
  for (const auto* items : {&request.finished(), &request.returned()}) {
    for (const proto::WorkItem& told_of : *items) {
      if (!ledger.Exists(told_of)) return Refusal(name, Describe(told_of), " do not exist");
      if (!ledger.WasGiven(told_of)) {
        return Refusal(name, Describe(told_of), " were never given to any worker");
      }
    }
  }
  return absl::OkStatus();
}

const proto::WorkLedger* DataDispatcher::FindRecord(const std::string& name) const {
  const auto& records = state_.record().work();
  const auto record = std::find_if(records.begin(), records.end(),
                                   [&name](const auto& other) { return other.name() == name; });
  return record == records.end() ? nullptr : &*record;
}

void DataDispatcher::Write(const std::string& name, const Dataset& dataset,
                           Transaction& change) const {
  for (proto::WorkLedger& record : *change.EditUnpublished().mutable_work()) {
    if (record.name() == name) dataset.ledger.WriteTo(record);
  }
}

void DataDispatcher::AddDataset(const proto::WorkRequest& request, NodeId node,
                                Transaction& change) {
  proto::WorkLedger added;
  added.set_name(request.name());
  added.set_examples(request.examples());
  added.set_item_examples(request.item_examples());
  added.set_passes(request.passes());
  added.set_seed(request.seed());
  Emplace(request.name(),
          {.ledger = ExampleLedger(added, absl::InfiniteFuture()),
           .passes = MemberPasses(request.passes(), NodeId(), absl::InfinitePast())});
  // In growing order of name.
  auto& all = *change.EditUnpublished().mutable_work();
  *all.Add() = added;
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  change.Add(DatasetAdded{.name = request.name(),
                          .passes = request.passes(),
                          .examples = request.examples(),
                          .first_asked_by = node});
}

void DataDispatcher::OnRequest(absl::Time now, const Message& message,
                               std::vector<Answer>& answers) {
  const proto::WorkRequest& request = message.envelope.work_request();
  if (const absl::Status status = Check(request); !status.ok()) {
    answers.push_back({message, status});
    return;
  }
  Transaction change(state_);
  const NodeId node = message.from().node;
  if (FindRecord(request.name()) == nullptr) AddDataset(request, node, change);
  Dataset& dataset = datasets_.at(request.name());
  if (WaitsForRecall(message, dataset)) {
    if (const std::optional<Message> other = dataset.recalls.Wait(now, message)) {
      answers.push_back({*other, absl::OkStatus(), ReplyOf(*other, dataset, {})});
    }
    return change.Commit();
  }
  if (TellsNothing(request) && !request.has_pass()) {
    cut_.NoteAsked(request.name(), node);
    const absl::Status known = AssignPass(now, message, dataset);
    answers.push_back(
        {message, known, known.ok() ? ReplyOf(message, dataset, {}) : proto::WorkReply()});
    return change.Commit();
  }
  const MemberPasses::Outcome place = NotePass(message, dataset);
  const bool is_late_copy = place == MemberPasses::Outcome::kLateCopy;
  cut_.Note(message, place);
  for (const proto::WorkItem& item : request.finished()) dataset.ledger.Finish(item);
  TakeBack(message, dataset, change);
  if (Leaves(request) && !is_late_copy) dataset.ledger.Release(node);
  std::vector<Range> items;
  // A pass that is named does not begin before all earlier ones are finished.
  const bool has_begun = request.pass() <= FindRecord(request.name())->pass();
  if (request.wanted() > 0 && !is_late_copy && !Leaves(request) && has_begun) {
    items = Give(now, message, dataset, change);
    if (items.empty()) Recall(now, message, dataset, answers);
  }
  EndIdleWait(node, dataset, answers);
  if (request.finished().empty()) {
    answers.push_back({message, absl::OkStatus(), ReplyOf(message, dataset, items)});
  } else {
    dataset.reports[node] = message;
    dataset.is_dirty = true;
    RecordDue(now, change, answers);
  }
  change.Commit();
}

absl::Status DataDispatcher::AssignPass(absl::Time now, const Message& message, Dataset& dataset) {
  const NodeId node = message.from().node;
  const proto::Group* group = FindActiveGroupOf(state_.view(), node);
  const std::optional<uint64_t> latest =
      Planted(PlantedBug::kNewMemberAhead) ? std::nullopt : dataset.passes.LatestOf(group, node);
  const std::string& name = message.envelope.work_request().name();
  if (!latest && dataset.passes.MayBeUnnamed(now, group, node)) {
    dataset.passes.NoteWithoutPass(node);
    return absl::UnavailableError(
        absl::StrCat("work '", name, "': the scheduler has restarted, and has not heard yet in ",
                     "which pass the other members of the group are; retry"));
  }
  // From now on the node counts as being there, so that all new members of a group are told one.
  dataset.passes.Note(node, message.envelope.header().request_id(),
                      latest.value_or(FindRecord(name)->pass()));
  return absl::OkStatus();
}

MemberPasses::Outcome DataDispatcher::NotePass(const Message& message, Dataset& dataset) {
  const proto::WorkRequest& request = message.envelope.work_request();
  const NodeId node = message.from().node;
  if (!request.has_pass()) {
    dataset.passes.NoteWithoutPass(node);
    return MemberPasses::Outcome::kStays;
  }
  return dataset.passes.Note(node, message.envelope.header().request_id(), request.pass());
}

// Request ids of a node grow. A request with a lower id than the newest has been given up, or is a
// duplicate; the items that it returns may have been leased to the node again. Requests for items
// and requests that return items are counted separately, because one of each may be in flight.

void DataDispatcher::TakeBack(const Message& message, Dataset& dataset, Transaction& change) const {
  const proto::WorkRequest& request = message.envelope.work_request();
  const NodeId node = message.from().node;
  const uint64_t id = message.envelope.header().request_id();
  if (request.returned().empty() || id <= dataset.returned[node]) return;
  dataset.returned[node] = id;
  uint64_t examples = 0;
  for (const proto::WorkItem& item : request.returned()) {
    examples += dataset.ledger.GiveBack(node, item);
  }
  if (dataset.recalls.NoteReturned(node) && examples > 0) {
    change.Add(ExamplesReclaimed{.dataset = request.name(), .examples = examples, .from = node});
  }
}

bool DataDispatcher::WaitsForRecall(const Message& message, const Dataset& dataset) {
  const proto::WorkRequest& request = message.envelope.work_request();
  const NodeId node = message.from().node;
  if (!TellsNothing(request) || Leaves(request)) return false;
  // A node that is in a pass, and names none, asks for it.
  if (!request.has_pass() && dataset.passes.LatestOf(nullptr, node)) return false;
  return dataset.ledger.Holds(node, PassOf(request));
}

void DataDispatcher::Recall(absl::Time now, const Message& message, Dataset& dataset,
                            std::vector<Answer>& answers) const {
  const NodeId node = message.from().node;
  const bool is_newest =
      dataset.given.at(node).request_id == message.envelope.header().request_id();
  if (!is_newest || dataset.ledger.Holds(node, PassOf(message.envelope.work_request()))) return;
  const std::optional<Message> holder = dataset.recalls.Recall(now, message);
  if (!holder) return;
  proto::WorkReply reply = ReplyOf(*holder, dataset, {});
  reply.set_return_untrained(true);
  reply.set_ask_again_ms(kReturnedAskAgainMs);
  answers.push_back({*holder, absl::OkStatus(), reply});
}

void DataDispatcher::EndIdleWait(NodeId node, Dataset& dataset,
                                 std::vector<Answer>& answers) const {
  const Message* wait = dataset.recalls.WaitOf(node);
  if (wait == nullptr || WaitsForRecall(*wait, dataset)) return;
  const Message request = *dataset.recalls.EndWait(node);
  answers.push_back({request, absl::OkStatus(), ReplyOf(request, dataset, {})});
}

std::vector<DataDispatcher::Range> DataDispatcher::Give(absl::Time now, const Message& message,
                                                        Dataset& dataset,
                                                        Transaction& change) const {
  const proto::WorkRequest& request = message.envelope.work_request();
  const NodeId node = message.from().node;
  const uint64_t id = message.envelope.header().request_id();
  Dataset::Given& given = dataset.given[node];
  if (id > given.request_id || given.request_id == 0) {
    // The first request of a node from before a restart may be a late duplicate of one that was
    // answered then. In that case no node holds the items of this reply.
    const bool is_of_before = node < first_newcomer_ || Planted(PlantedBug::kSuspectNewcomers);
    const bool may_be_copy = dataset.is_recovered && given.request_id == 0 && is_of_before &&
                             !Planted(PlantedBug::kCopiesHoldItems);
    given = {.request_id = id, .items = dataset.ledger.Take(request.wanted(), PassOf(request))};
    if (!given.items.empty()) dataset.recalls.NoteGiven(now, node);
    if (may_be_copy) {
      dataset.ledger.LeaseAsOrphaned(given.items, now + kLease);
    } else {
      dataset.ledger.LeaseTo(node, given.items);
    }
    if (dataset.ledger.ExtendAllowance()) {
      Write(request.name(), dataset, change);
      change.Add(ItemsHandedOut{.dataset = request.name()});
    }
  }
  return id == given.request_id ? given.items : std::vector<Range>();
}

void DataDispatcher::Tick(absl::Time now, std::vector<Answer>& answers) {
  Transaction change(state_);
  RecordDue(now, change, answers);
  for (auto& [name, dataset] : datasets_) {
    for (const Message& request : dataset.recalls.TakeExpired(now)) {
      proto::WorkReply reply = ReplyOf(request, dataset, {});
      reply.clear_ask_again_ms();
      answers.push_back({request, absl::OkStatus(), reply});
    }
  }
  change.Commit();
}

void DataDispatcher::RecordDue(absl::Time now, Transaction& change, std::vector<Answer>& answers) {
  bool recorded = false;
  for (auto& [name, dataset] : datasets_) {
    if (now >= dataset.ledger.orphaned_until()) {
      if (const uint64_t examples = dataset.ledger.ExpireOrphaned(); examples > 0) {
        change.Add(UnreportedExamplesExpired{.dataset = name, .examples = examples});
      }
    }
    if (now < RecordAt(dataset)) continue;
    Record(name, dataset, change, answers);
    recorded = true;
  }
  if (recorded) last_record_ = now;
}

absl::Time DataDispatcher::RecordAt(const Dataset& dataset) const {
  if (!dataset.is_dirty) return absl::InfiniteFuture();
  const ExampleLedger& ledger = dataset.ledger;
  const std::optional<uint64_t> pass = dataset.passes.Latest();
  const bool is_finished =
      ledger.finished() == ledger.total() || (pass && ledger.IsFinished(*pass));
  if (is_finished) return absl::InfinitePast();
  const bool is_last = ledger.has_nothing_to_give() || (pass && ledger.HasNothingToGive(*pass));
  return last_record_ + (is_last ? kLastRecordInterval : kRecordInterval);
}

void DataDispatcher::Record(const std::string& name, Dataset& dataset, Transaction& change,
                            std::vector<Answer>& answers) {
  const uint64_t finished = dataset.ledger.finished();
  change.Add(ExamplesFinished{.dataset = name, .examples = finished - dataset.finished_recorded});
  const uint64_t passes_before = FindRecord(name)->pass();
  Write(name, dataset, change);
  dataset.finished_recorded = finished;
  dataset.is_dirty = false;
  for (auto& [node, message] : std::exchange(dataset.reports, {})) {
    // The request may have asked for items, too.
    const auto given = dataset.given.find(node);
    const bool asked = given != dataset.given.end() &&
                       given->second.request_id == message.envelope.header().request_id();
    answers.push_back(
        {message, absl::OkStatus(),
         ReplyOf(message, dataset, asked ? given->second.items : std::vector<Range>())});
  }
  const proto::WorkLedger& record = *FindRecord(name);
  if (record.pass() > passes_before) {
    change.Add(
        PassesFinished{.dataset = name, .finished = record.pass(), .passes = record.passes()});
  }
}

proto::WorkReply DataDispatcher::ReplyOf(const Message& message, const Dataset& dataset,
                                         const std::vector<Range>& items) const {
  const NodeId node = message.from().node;
  proto::WorkReply reply;
  for (const Range& range : items) *reply.add_items() = dataset.ledger.ItemOf(range);
  reply.set_examples_finished(dataset.finished_recorded);
  reply.set_done(dataset.finished_recorded == dataset.ledger.total());
  reply.set_passes_finished(FindRecord(message.envelope.work_request().name())->pass());
  reply.set_group_pass(dataset.passes.LatestOf(FindActiveGroupOf(state_.view(), node), node)
                           .value_or(reply.passes_finished()));
  if (!reply.done()) reply.set_ask_again_ms(kAskAgainMs);
  return reply;
}

void DataDispatcher::OnDeparture(absl::Time now, NodeId node, std::vector<Answer>& answers) {
  Transaction change(state_);
  cut_.Forget(node);
  for (auto& [name, dataset] : datasets_) {
    dataset.passes.Forget(node);
    dataset.given.erase(node);
    dataset.returned.erase(node);
    const absl::Status departed =
        absl::AbortedError(absl::StrCat("work '", name, "': node ", node.value(), " has departed"));
    if (const auto report = dataset.reports.find(node); report != dataset.reports.end()) {
      // Its examples count as finished nevertheless.
      answers.push_back({std::move(report->second), departed});
      dataset.reports.erase(report);
    }
    if (std::optional<Message> wait = dataset.recalls.Forget(node)) {
      answers.push_back({*std::move(wait), departed});
    }
    if (const uint64_t examples = dataset.ledger.Release(node); examples > 0) {
      change.Add(ExamplesReclaimed{.dataset = name, .examples = examples, .from = node});
    }
  }
  RecordDue(now, change, answers);
  change.Commit();
}

absl::Time DataDispatcher::NextTick() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, dataset] : datasets_) {
    next = std::min(next, dataset.ledger.orphaned_until());
    next = std::min({next, RecordAt(dataset), dataset.recalls.NextExpiry()});
  }
  return next;
}

}  // namespace covey::scheduler
