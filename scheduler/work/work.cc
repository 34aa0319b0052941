#include "scheduler/work/work.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::scheduler {
namespace {

// What a worker should do that gets no items because all are given.
constexpr uint32_t kAskAgainMs = 50;

uint64_t Total(const proto::WorkLedger& record) { return record.examples() * record.passes(); }

RangeSet::Range PositionsOf(const proto::WorkLedger& record, const proto::WorkItem& item) {
  return {item.pass() * record.examples() + item.first(), item.count()};
}

proto::WorkItem ItemOf(const proto::WorkLedger& record, RangeSet::Range range) {
  proto::WorkItem item;
  item.set_pass(range.first / record.examples());
  item.set_first(range.first % record.examples());
  item.set_count(range.count);
  return item;
}

bool IsInside(const proto::WorkLedger& record, const proto::WorkItem& item) {
  return item.pass() < record.passes() && item.first() < record.examples() && item.count() > 0 &&
         item.count() <= record.examples() - item.first();
}

std::string Describe(const proto::WorkItem& item) {
  return absl::StrCat("examples [", item.first(), ", ", item.first() + item.count(), ") of pass ",
                      item.pass() + 1);
}

void Append(const Work::Change& more, Work::Change& change) {
  const auto append = [](const std::string& from, std::string& to) {
    if (!from.empty()) absl::StrAppend(&to, to.empty() ? "" : "; ", from);
  };
  append(more.decision, change.decision);
  append(more.record, change.record);
}

}  // namespace

void Work::Start(absl::Time now) {
  first_newcomer_ = NodeId(state_.next_node());
  for (const proto::WorkLedger& record : state_.work()) {
    Ledger& ledger = ledgers_[record.name()];
    ledger.finished.Add({0, record.pass() * record.examples()});
    for (const proto::WorkItem& item : record.finished()) {
      const Range range = PositionsOf(record, item);
      ledger.finished.Add(range);
      ledger.next = std::max(ledger.next, range.first + range.count);
    }
    ledger.finished_recorded = ledger.finished.size();
    ledger.allowed = ledger.next;
    ledger.unknown.Add(ledger.finished.Missing({0, ledger.next}));
    if (!ledger.unknown.empty()) ledger.unknown_until = now + kLease;
    ledger.recovered = true;
  }
}

absl::Status Work::Check(const proto::WorkRequest& request) const {
  const std::string& name = request.name();
  if (name.empty() || name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("work: a data set's name has 1 to ", kNameBytesMax, " bytes"));
  }
  const auto refuse = [&name](auto... why) {
    return absl::InvalidArgumentError(absl::StrCat("work '", name, "': ", why...));
  };
  const uint64_t examples = request.examples();
  const uint64_t item = request.item_examples();
  if (examples == 0 || item == 0 || item > examples || (examples - 1) / item + 1 > kWorkItemsMax) {
    return refuse(examples, " examples in items of ", item, "; choose 1 to ", kWorkItemsMax,
                  " items of at least 1 example");
  }
  if (request.passes() == 0 || request.passes() > kExamplesMax / examples) {
    return refuse(request.passes(), " passes over ", examples, " examples; choose 1 to ",
                  kExamplesMax / examples, " passes");
  }
  const int told = std::max(request.finished_size(), request.returned_size());
  if (std::max<uint64_t>(request.wanted(), static_cast<uint64_t>(told)) > kWorkItemsPerRequestMax) {
    return refuse("one request is about ", kWorkItemsPerRequestMax, " items at most");
  }
  const auto record =
      std::find_if(state_.work().begin(), state_.work().end(),
                   [&name](const proto::WorkLedger& other) { return other.name() == name; });
  if (record == state_.work().end()) {
    if (told > 0) return refuse("this job never gave anything of it to anybody");
    if (state_.work_size() < static_cast<int>(kWorkLedgersMax)) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "work '", name, "': the job has ", kWorkLedgersMax, " data sets, the most it can"));
  }
  if (record->examples() != examples || record->item_examples() != item ||
      record->passes() != request.passes() || record->seed() != request.seed()) {
    return refuse("this worker says ", examples, " examples in items of ", item, ", ",
                  request.passes(), " passes, seed ", request.seed(), "; others said ",
                  record->examples(), " in items of ", record->item_examples(), ", ",
                  record->passes(), " passes, seed ", record->seed(), ": all have to agree");
  }
  const uint64_t next = ledgers_.at(name).next;
  for (const auto* items : {&request.finished(), &request.returned()}) {
    for (const proto::WorkItem& told_of : *items) {
      if (!IsInside(*record, told_of)) return refuse(Describe(told_of), " do not exist");
      const Range range = PositionsOf(*record, told_of);
      if (range.first + range.count > next) {
        return refuse(Describe(told_of), " were never given to anybody");
      }
    }
  }
  return absl::OkStatus();
}

proto::WorkLedger* Work::Find(const std::string& name) {
  for (proto::WorkLedger& record : *state_.mutable_work()) {
    if (record.name() == name) return &record;
  }
  return nullptr;
}

Work::Change Work::Take(absl::Time now, const Message& message, std::vector<Answer>& answers) {
  const proto::WorkRequest& request = message.envelope.work_request();
  const NodeId node = message.from().node;
  Change change;
  if (const absl::Status status = Check(request); !status.ok()) {
    answers.push_back({message, status});
    return change;
  }
  proto::WorkLedger* record = Find(request.name());
  if (record == nullptr) {
    proto::WorkLedger added;
    added.set_name(request.name());
    added.set_examples(request.examples());
    added.set_item_examples(request.item_examples());
    added.set_passes(request.passes());
    added.set_seed(request.seed());
    // In growing order of name.
    auto& all = *state_.mutable_work();
    *all.Add() = added;
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.name() < b.name(); });
    record = Find(request.name());
    change.decision =
        absl::StrCat("work '", request.name(), "': ", request.passes(), " passes over ",
                     request.examples(), " examples, first asked for by node ", node.value());
  }
  Ledger& ledger = ledgers_[request.name()];
  for (const proto::WorkItem& item : request.finished()) {
    Finish(ledger, PositionsOf(*record, item));
  }
  const uint64_t id = message.envelope.header().request_id();
  // Request ids of a node grow; an older one than the newest has been given up, or is a copy: what
  // that gives back may have been given to the node again. Requests for items and those that give
  // some back are counted apart, for one of each may be under way.
  if (!request.returned().empty() && id > ledger.returned[node]) {
    ledger.returned[node] = id;
    for (const proto::WorkItem& item : request.returned()) {
      GiveBack(ledger, node, PositionsOf(*record, item));
    }
  }
  if (request.wanted() > 0) {
    Ledger::Given& given = ledger.given[node];
    if (id > given.request_id || given.request_id == 0) {
      const bool may_be_copy = ledger.recovered && given.request_id == 0 && node < first_newcomer_;
      given = {.request_id = id, .items = Give(ledger, *record, request.wanted(), change)};
      RangeSet& holder = may_be_copy ? ledger.unknown : ledger.leased[node];
      for (const Range& range : given.items) holder.Add(range);
      if (may_be_copy && !given.items.empty()) {
        ledger.unknown_until = now + kLease;
        ledger.unknown_may_be_lost = false;
      }
    }
    if (request.finished().empty()) {
      const bool newest = id == given.request_id;
      answers.push_back({message, absl::OkStatus(),
                         ReplyOf(ledger, *record, newest ? given.items : std::vector<Range>())});
      return change;
    }
  }
  if (request.finished().empty()) {
    answers.push_back({message, absl::OkStatus(), ReplyOf(ledger, *record, {})});
    return change;
  }
  ledger.reports[node] = message;
  ledger.dirty = true;
  // Others wait to hear that it is over.
  if (ledger.finished.size() == Total(*record)) next_record_ = now;
  Append(Tick(now, answers), change);
  return change;
}

void Work::Finish(Ledger& ledger, Range range) {
  ledger.free.Remove(range);
  ledger.unknown.Remove(range);
  if (!Planted(PlantedBug::kWorkGivenTwice)) {
    // It was given to another one only after its holder had been silent for kLease.
    for (auto& [node, leased] : ledger.leased) leased.Remove(range);
  }
  ledger.finished.Add(range);
}

void Work::GiveBack(Ledger& ledger, NodeId node, Range range) {
  if (const auto leased = ledger.leased.find(node); leased != ledger.leased.end()) {
    ledger.free.Add(leased->second.Remove(range));
  }
  ledger.free.Add(ledger.unknown.Remove(range));
}

std::vector<Work::Range> Work::Give(Ledger& ledger, const proto::WorkLedger& record,
                                    uint32_t wanted, Change& change) {
  std::vector<Range> items;
  // No item is in two passes.
  const auto left_in_pass = [&record](uint64_t first) {
    return record.examples() - first % record.examples();
  };
  const auto take = [&](RangeSet& from) {
    Range range = from.Lowest(record.item_examples());
    range.count = std::min(range.count, left_in_pass(range.first));
    from.Remove(range);
    items.push_back(range);
  };
  const uint64_t total = Total(record);
  // Their pass has no others left: who holds them has had all the time that there is.
  const auto unknown_are_due = [&] {
    if (!ledger.unknown_may_be_lost || ledger.unknown.empty()) return false;
    const uint64_t first = ledger.unknown.Lowest(1).first;
    return first + left_in_pass(first) <= ledger.next;
  };
  while (items.size() < wanted) {
    if (!ledger.free.empty()) {
      take(ledger.free);
    } else if (unknown_are_due()) {
      take(ledger.unknown);
    } else if (ledger.next < total) {
      items.push_back({ledger.next, std::min(record.item_examples(), left_in_pass(ledger.next))});
      ledger.next += items.back().count;
    } else {
      break;
    }
  }
  if (ledger.next > ledger.allowed) {
    const uint64_t ahead = kGivenAhead * record.item_examples();
    ledger.allowed = total - ledger.next <= ahead ? total : ledger.next + ahead;
    WriteRanges(ledger, *Find(record.name()));
    change.record = absl::StrCat("work '", record.name(), "': items given");
  }
  return items;
}

Work::Change Work::Tick(absl::Time now, std::vector<Answer>& answers) {
  Change change;
  for (proto::WorkLedger& record : *state_.mutable_work()) {
    Ledger& ledger = ledgers_[record.name()];
    if (now >= ledger.unknown_until) {
      ledger.unknown_until = absl::InfiniteFuture();
      ledger.unknown_may_be_lost = true;
      if (!ledger.unknown.empty()) {
        change.decision =
            absl::StrCat("work '", record.name(), "': ", ledger.unknown.size(),
                         " examples that were given before the scheduler's restart are given again "
                         "at the end of their pass, unless somebody reports them by then");
      }
    }
    if (!ledger.dirty || now < next_record_) continue;
    Append(Record(ledger, record, answers), change);
  }
  if (now >= next_record_ && !change.record.empty()) next_record_ = now + kRecordInterval;
  return change;
}

Work::Change Work::Record(Ledger& ledger, proto::WorkLedger& record, std::vector<Answer>& answers) {
  Change change;
  const uint64_t before = record.pass();
  change.record =
      absl::StrCat("work '", record.name(),
                   "': ", ledger.finished.size() - ledger.finished_recorded, " examples finished");
  WriteRanges(ledger, record);
  ledger.finished_recorded = ledger.finished.size();
  ledger.dirty = false;
  for (auto& [node, message] : std::exchange(ledger.reports, {})) {
    // It may have asked for items, too.
    const auto given = ledger.given.find(node);
    const bool asked = given != ledger.given.end() &&
                       given->second.request_id == message.envelope.header().request_id();
    answers.push_back(
        {message, absl::OkStatus(),
         ReplyOf(ledger, record, asked ? given->second.items : std::vector<Range>())});
  }
  if (record.pass() > before) {
    change.decision = absl::StrCat("work '", record.name(), "': ", record.pass(), " of ",
                                   record.passes(), " passes finished");
  }
  return change;
}

void Work::WriteRanges(const Ledger& ledger, proto::WorkLedger& record) const {
  const auto gaps = ledger.finished.Missing({0, Total(record)});
  record.set_pass((gaps.empty() ? Total(record) : gaps.front().first) / record.examples());
  record.clear_finished();
  const uint64_t start = record.pass() * record.examples();
  for (Range range : ledger.finished.ranges()) {
    const uint64_t end = range.first + range.count;
    if (end <= start) continue;
    for (uint64_t first = std::max(range.first, start); first < end;) {
      const uint64_t left_in_pass = record.examples() - first % record.examples();
      const uint64_t count = std::min(end - first, left_in_pass);
      *record.add_finished() = ItemOf(record, {first, count});
      first += count;
    }
  }
  *record.add_finished() = ItemOf(record, {ledger.allowed, 0});
}

proto::WorkReply Work::ReplyOf(const Ledger& ledger, const proto::WorkLedger& record,
                               const std::vector<Range>& items) const {
  proto::WorkReply reply;
  for (const Range& range : items) *reply.add_items() = ItemOf(record, range);
  reply.set_examples_finished(ledger.finished_recorded);
  reply.set_done(ledger.finished_recorded == Total(record));
  if (items.empty() && !reply.done()) reply.set_ask_again_ms(kAskAgainMs);
  return reply;
}

Work::Change Work::Forget(absl::Time now, NodeId node, std::vector<Answer>& answers) {
  Change change;
  for (proto::WorkLedger& record : *state_.mutable_work()) {
    Ledger& ledger = ledgers_[record.name()];
    ledger.given.erase(node);
    ledger.returned.erase(node);
    if (const auto report = ledger.reports.find(node); report != ledger.reports.end()) {
      // What it told is as good as before.
      answers.push_back({std::move(report->second),
                         absl::AbortedError(absl::StrCat("work '", record.name(), "': node ",
                                                         node.value(), " has departed"))});
      ledger.reports.erase(report);
    }
    const auto leased = ledger.leased.find(node);
    if (leased == ledger.leased.end()) continue;
    if (!leased->second.empty()) {
      Append({.decision = absl::StrCat("work '", record.name(), "': ", leased->second.size(),
                                       " examples of node ", node.value(), " are given to others")},
             change);
    }
    ledger.free.Add(leased->second.ranges());
    ledger.leased.erase(leased);
  }
  Append(Tick(now, answers), change);
  return change;
}

absl::Time Work::NextTick() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, ledger] : ledgers_) {
    next = std::min(next, ledger.unknown_until);
    if (ledger.dirty) next = std::min(next, next_record_);
  }
  return next;
}

}  // namespace covey::scheduler
