// SPDX-License-Identifier: Apache-2.0
#include "worker/data_source.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "proto/scheduler.pb.h"
#include "worker/data/local_work_queue.h"
#include "worker/engine/worker_core.h"

namespace covey::worker {
namespace {

// How long before they are needed items are requested.
constexpr absl::Duration kAhead = absl::Milliseconds(250);
// How long a worker without examples waits for some before it takes part in a step without any.
// Meanwhile the members of its group that have examples wait for it.
constexpr absl::Duration kDryMax = absl::Milliseconds(5);
// How long a request is retried; a scheduler that is away comes back.
constexpr absl::Duration kRequestMax = absl::Hours(24);
constexpr absl::Duration kCloseMax = absl::Seconds(2);
// How long members that may end wait for the others before they take part in another step.
constexpr absl::Duration kMeetMax = absl::Milliseconds(300);
constexpr absl::Duration kMeetAnswerMax = absl::Minutes(10);

// What a request to the scheduler is for. At most one of each purpose is under way: a report waits
// for the scheduler's log, and returns that overtook each other would be taken for old ones.
enum class Purpose {
  kItems,
  kReport,
  kReturn,
  kRecall,  // waits until the scheduler wants examples back
};

// Without a pass.
proto::WorkRequest MakeRequest(const DataSource::Options& options) {
  proto::WorkRequest request;
  request.set_name(options.name);
  request.set_examples(options.examples);
  request.set_item_examples(options.item_examples);
  request.set_passes(options.passes);
  request.set_seed(options.seed);
  return request;
}

void TakeReport(LocalWorkQueue& work, proto::WorkRequest& request) {
  LocalWorkQueue::Report report = work.TakeReport(MonotonicNow(), kWorkItemsPerRequestMax);
  for (proto::WorkItem& item : report.finished) *request.add_finished() = std::move(item);
  request.set_finished_step(report.finished_step);
}

}  // namespace

// The state that the loop's replies change; they may arrive after the source is destroyed.
struct DataSource::State {
  State(client::Connection& connection, const Options& options)
      : connection(connection), options(options) {}

  client::Connection& connection;
  const Options options;

  mutable Mutex mutex;
  CondVar changed;
  LocalWorkQueue work ABSL_GUARDED_BY(mutex);
  std::set<Purpose> under_way ABSL_GUARDED_BY(mutex);
  // Of the return that is under way.
  std::vector<proto::WorkItem> returned ABSL_GUARDED_BY(mutex);
  // When the scheduler is asked for items again, and when it may be asked whether to return some.
  absl::Time ask_again ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  absl::Time await_recall_again ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
  bool is_recalled ABSL_GUARDED_BY(mutex) = false;
  bool all_done ABSL_GUARDED_BY(mutex) = false;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  uint64_t examples_finished ABSL_GUARDED_BY(mutex) = 0;
  // With kMeet. A new member has taken no examples yet, and has seen no end of a pass: it follows
  // its group to another pass. Others end their pass first.
  uint64_t pass ABSL_GUARDED_BY(mutex) = 0;
  uint64_t passes_finished ABSL_GUARDED_BY(mutex) = 0;
  uint64_t group_pass ABSL_GUARDED_BY(mutex) = 0;
  bool is_new ABSL_GUARDED_BY(mutex) = true;
  absl::Status failure ABSL_GUARDED_BY(mutex);

  bool meets() const { return options.at_pass_end == AtPassEnd::kMeet; }
  // Nothing more is to be taken: in the present pass, with kMeet.
  bool done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return all_done || (meets() && (pass < passes_finished || pass >= options.passes));
  }
  proto::WorkRequest MakeRequest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    proto::WorkRequest request = worker::MakeRequest(options);
    if (meets()) request.set_pass(pass);
    return request;
  }
  // What waits is finished by others, or of the pass before.
  void GoTo(uint64_t next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    pass = next;
    work.TakeUntrained();
    ask_again = absl::InfinitePast();
  }
  bool is_under_way(Purpose purpose) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return under_way.contains(purpose);
  }
  using Requests = std::vector<std::pair<Purpose, proto::Envelope>>;
  // Appends a request that is under way from now on.
  proto::WorkRequest& Begin(Purpose purpose, Requests& requests)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The requests that are due.
  Requests BeginDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void End(absl::Time now, Purpose purpose, const proto::WorkReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void TakeReply(const proto::WorkReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (const proto::WorkItem& item : reply.items()) {
      const bool fits = item.pass() < options.passes && item.first() < options.examples &&
                        item.count() <= options.examples - item.first();
      if (fits && (!meets() || item.pass() == pass)) work.Add(item);
    }
    all_done = all_done || reply.done();
    examples_finished = std::max(examples_finished, reply.examples_finished());
    passes_finished = std::max(passes_finished, reply.passes_finished());
    group_pass = reply.group_pass();
    is_recalled = is_recalled || reply.return_untrained();
    if (meets() && is_new && group_pass > pass) GoTo(group_pass);
  }
};

absl::StatusOr<std::unique_ptr<DataSource>> DataSource::Open(Worker& worker,
                                                             const Options& options) {
  if (options.examples == 0 || options.examples - 1 > std::numeric_limits<uint32_t>::max() ||
      options.item_examples == 0 || options.item_examples > options.examples ||
      options.passes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("work '", options.name, "': ", options.passes, " passes over ",
                     options.examples, " examples in items of ", options.item_examples,
                     "; choose at least 1 of each, and at most 2^32 examples"));
  }
  auto source = std::unique_ptr<DataSource>(new DataSource(worker, options));
  // The first reply shows whether all workers use the same options.
  const absl::Duration patience = worker.core().config().cluster.operation_deadline;
  if (source->state_->meets()) {
    // Without a pass it asks for that of the group.
    const absl::Status told = source->Tell(MakeRequest(options), patience);
    MutexLock lock(source->state_->mutex);
    source->state_->failure = told;
    COVEY_RETURN_IF_ERROR(told);
  }
  Ask(source->state_);
  State& state = *source->state_;
  MutexLock lock(state.mutex);
  const absl::Time until = MonotonicNow() + patience;
  while (state.is_under_way(Purpose::kItems) && MonotonicNow() < until) {
    state.changed.WaitFor(state.mutex, until - MonotonicNow());
  }
  COVEY_RETURN_IF_ERROR(state.failure);
  return source;
}

DataSource::DataSource(Worker& worker, const Options& options)
    : worker_(worker),
      options_(options),
      state_(std::make_shared<State>(worker.core().connection(), options)) {}

DataSource::~DataSource() {
  const absl::Time until = MonotonicNow() + kCloseMax;
  proto::WorkRequest last;
  bool leaves = false;
  {
    MutexLock lock(state_->mutex);
    while ((state_->is_under_way(Purpose::kReport) || state_->is_under_way(Purpose::kReturn)) &&
           MonotonicNow() < until) {
      state_->changed.WaitFor(state_->mutex, until - MonotonicNow());
    }
    state_->closed = true;
    const bool reporting = state_->is_under_way(Purpose::kReport);
    if (!state_->failure.ok()) return;
    last = state_->MakeRequest();
    TakeReport(state_->work, last);
    // A report that is still under way may arrive after this one.
    if (reporting) last.clear_finished_step();
    // Its place in a pass ends, so that no member and no snapshot waits for it.
    leaves = state_->meets() && !state_->all_done && !reporting;
    if (leaves) last.set_pass(options_.passes);
    // Once this request has arrived, a return that is still under way counts for nothing.
    std::vector<proto::WorkItem> returned = state_->returned;
    for (proto::WorkItem& item : state_->work.TakeUntrained()) returned.push_back(std::move(item));
    for (proto::WorkItem& item : returned) {
      // The scheduler takes back the other items when this worker leaves.
      if (last.returned_size() == static_cast<int>(kWorkItemsPerRequestMax)) break;
      *last.add_returned() = std::move(item);
    }
  }
  if (last.finished_size() + last.returned_size() == 0 && !leaves) return;
  proto::Envelope envelope;
  *envelope.mutable_work_request() = std::move(last);
  state_->connection.Request(std::move(envelope), kCloseMax).status().IgnoreError();
}

proto::WorkRequest& DataSource::State::Begin(Purpose purpose, Requests& requests) {
  under_way.insert(purpose);
  requests.emplace_back(purpose, proto::Envelope());
  proto::WorkRequest& request = *requests.back().second.mutable_work_request();
  request = MakeRequest();
  return request;
}

DataSource::State::Requests DataSource::State::BeginDue(absl::Time now) {
  Requests due;
  if (closed || !failure.ok()) return due;
  if (is_recalled && !is_under_way(Purpose::kReturn)) {
    is_recalled = false;
    returned = work.TakeWaiting(kWorkItemsPerRequestMax);
    if (!returned.empty()) {
      proto::WorkRequest& request = Begin(Purpose::kReturn, due);
      for (const proto::WorkItem& item : returned) *request.add_returned() = item;
    }
  }
  const uint64_t wanted = work.Wanted(kAhead);
  if (!is_under_way(Purpose::kItems) && !done() && work.waiting() < wanted && now >= ask_again) {
    const uint64_t items = (2 * wanted - work.waiting() - 1) / options.item_examples + 1;
    Begin(Purpose::kItems, due)
        .set_wanted(static_cast<uint32_t>(std::min<uint64_t>(items, kWorkItemsPerRequestMax)));
  }
  if (!is_under_way(Purpose::kReport) && work.HasReport(now)) {
    TakeReport(work, Begin(Purpose::kReport, due));
  }
  if (!is_under_way(Purpose::kRecall) && !done() && work.waiting() > 0 &&
      now >= await_recall_again) {
    Begin(Purpose::kRecall, due);
  }
  return due;
}

void DataSource::State::End(absl::Time now, Purpose purpose, const proto::WorkReply& reply) {
  const uint64_t waiting_before = work.waiting();
  TakeReply(reply);
  const bool brought_items = work.waiting() > waiting_before;
  const absl::Time again = now + absl::Milliseconds(reply.ask_again_ms());
  if (purpose == Purpose::kItems && brought_items) {
    // A scheduler of release 0.1.0 recalls nothing. It says when to ask again only without items.
    await_recall_again = again > now ? absl::InfinitePast() : absl::InfiniteFuture();
  } else if (purpose == Purpose::kItems || reply.return_untrained()) {
    ask_again = again;
  }
  if (purpose == Purpose::kRecall) await_recall_again = again;
}

void DataSource::Ask(const std::shared_ptr<State>& state) {
  State::Requests requests;
  {
    MutexLock lock(state->mutex);
    requests = state->BeginDue(MonotonicNow());
  }
  for (auto& [purpose, request] : requests) {
    const auto answered = [state, purpose = purpose](absl::Time now, const absl::Status& status,
                                                     const proto::Envelope* reply, Outbox&) {
      {
        MutexLock lock(state->mutex);
        state->under_way.erase(purpose);
        if (purpose == Purpose::kReturn) state->returned.clear();
        if (status.ok()) {
          state->End(now, purpose, reply->work_reply());
        } else {
          state->failure.Update(status);
        }
        state->changed.NotifyAll();
      }
      Ask(state);
    };
    const bool posted = state->connection.Post([state, request = std::move(request), answered](
                                                   absl::Time now, Outbox& outbox) {
      state->connection.client().control().Start(now, request, now + kRequestMax, answered, outbox);
    });
    if (posted) continue;
    MutexLock lock(state->mutex);
    state->failure.Update(absl::UnavailableError(
        "the worker is shutting down or its request queue is full; retry later"));
  }
}

absl::StatusOr<std::span<const uint32_t>> DataSource::Take(uint64_t samples) {
  std::vector<proto::WorkItem> pieces;
  const absl::Time until = MonotonicNow() + kDryMax;
  for (;;) {
    Ask(state_);
    const absl::Time now = MonotonicNow();
    MutexLock lock(state_->mutex);
    COVEY_RETURN_IF_ERROR(state_->failure);
    if (state_->work.waiting() > 0 || state_->done() || samples == 0 || now >= until) {
      pieces = state_->work.Take(now, samples, worker_.core().steps());
      if (!pieces.empty()) state_->is_new = false;
      break;
    }
    const absl::Time next =
        state_->is_under_way(Purpose::kItems) ? until : std::min(until, state_->ask_again);
    state_->changed.WaitFor(state_->mutex, std::max(next - now, absl::Milliseconds(1)));
  }
  batch_.clear();
  for (const proto::WorkItem& piece : pieces) {
    const std::vector<uint32_t>& order = OrderOf(piece.pass());
    const auto first = order.begin() + static_cast<ptrdiff_t>(piece.first());
    batch_.insert(batch_.end(), first, first + static_cast<ptrdiff_t>(piece.count()));
  }
  return std::span<const uint32_t>(batch_);
}

void DataSource::Finish(size_t under_way) {
  {
    MutexLock lock(state_->mutex);
    state_->work.Finish(under_way, worker_.core().steps());
    if (state_->is_under_way(Purpose::kReport) || !state_->work.HasReport(MonotonicNow())) return;
  }
  Ask(state_);
}

const std::vector<uint32_t>& DataSource::OrderOf(uint64_t pass) {
  const auto known = orders_.find(pass);
  if (known != orders_.end()) return known->second;
  // Lost items of an older pass may come back, but rarely; at the end of a pass two orders are in
  // use.
  if (orders_.size() >= 2) orders_.erase(orders_.begin());
  std::vector<uint32_t>& order = orders_[pass];
  order.resize(options_.examples);
  std::iota(order.begin(), order.end(), 0);
  if (options_.seed == 0) return order;
  // Fisher and Yates, starting from the identity, so that a pass does not depend on earlier ones.
  Random random = Random(options_.seed).Split(pass);
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  return order;
}

bool DataSource::done() const {
  MutexLock lock(state_->mutex);
  return state_->done();
}

uint64_t DataSource::pass() const {
  MutexLock lock(state_->mutex);
  return state_->pass;
}

uint64_t DataSource::examples_finished() const {
  MutexLock lock(state_->mutex);
  return state_->examples_finished;
}

absl::StatusOr<bool> DataSource::MeetAtEnd(HybridStep& hybrid) {
  // A member that has begun a step that others have not waits for them here, not at the barrier.
  // Otherwise two members that are one step apart could miss each other again and again.
  COVEY_RETURN_IF_ERROR(hybrid.Finish());
  COVEY_RETURN_IF_ERROR(worker_.group().Refresh());
  COVEY_ASSIGN_OR_RETURN(const uint64_t step, hybrid.step());
  std::string pass;
  bool was_new = false;
  if (state_->meets()) {
    proto::WorkRequest request;
    {
      MutexLock lock(state_->mutex);
      request = state_->MakeRequest();
    }
    COVEY_RETURN_IF_ERROR(Tell(request, kMeetAnswerMax));
    MutexLock lock(state_->mutex);
    if (!state_->done()) return false;  // it has followed its group
    is_over_ = state_->group_pass > state_->pass;
    if (is_over_) return true;
    pass = absl::StrCat(state_->pass, "/");
    // While it meets the others it does not follow one that has just gone on.
    was_new = std::exchange(state_->is_new, false);
  }
  // The scheduler releases all members or none, so all end with the same step or none does. A
  // member that waits for one that has begun the next step gives up soon and follows it into that
  // step.
  proto::Envelope envelope;
  proto::BarrierRequest& request = *envelope.mutable_barrier_request();
  request.set_name(absl::StrCat("end/", options_.name, "/", pass, worker_.group().id().value(), "/",
                                worker_.group().size(), "/", step));
  request.set_participants(worker_.group().size());
  request.set_deadline_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kMeetMax)));
  const absl::Status met = state_->connection.Request(std::move(envelope), kMeetAnswerMax).status();
  if (absl::IsDeadlineExceeded(met)) {
    MutexLock lock(state_->mutex);
    state_->is_new = was_new;
    return false;
  }
  COVEY_RETURN_IF_ERROR(met);
  is_over_ = true;
  return true;
}

absl::StatusOr<bool> DataSource::NextPass() {
  if (!is_over_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "work '", options_.name, "': call MeetAtEnd until it returns true, then NextPass"));
  }
  if (!state_->meets()) return false;
  is_over_ = false;
  proto::WorkRequest request;
  {
    MutexLock lock(state_->mutex);
    // A report tells the pass in which it was sent, so it arrives before.
    while (state_->is_under_way(Purpose::kReport) && state_->failure.ok()) {
      state_->changed.WaitFor(state_->mutex, kMeetMax);
    }
    COVEY_RETURN_IF_ERROR(state_->failure);
    state_->is_new = false;
    state_->GoTo(std::min(state_->pass + 1, options_.passes));
    if (state_->pass == options_.passes) return false;
    request = state_->MakeRequest();
    TakeReport(state_->work, request);
  }
  COVEY_RETURN_IF_ERROR(Tell(request, kMeetAnswerMax));
  return true;
}

absl::Status DataSource::Tell(const proto::WorkRequest& request, absl::Duration timeout) {
  proto::Envelope envelope;
  *envelope.mutable_work_request() = request;
  COVEY_ASSIGN_OR_RETURN(const proto::Envelope reply,
                         state_->connection.Request(std::move(envelope), timeout));
  MutexLock lock(state_->mutex);
  state_->TakeReply(reply.work_reply());
  return absl::OkStatus();
}

}  // namespace covey::worker
