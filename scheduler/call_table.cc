#include "scheduler/call_table.h"

#include <sched.h>

#include <bit>
#include <utility>

#include "common/base/log.h"

namespace covey::scheduler {

bool CallTable::Begin(std::shared_ptr<Call> call, Message request) {
  return loop_.Post([this, call = std::move(call), request = std::move(request)](
                        absl::Time now, Outbox& outbox) mutable {
    call->number = ++last_number_;
    calls_[call->number] = call;
    Ask(now, *call, std::move(request), outbox);
  });
}

void CallTable::Continue(std::shared_ptr<Call> call,
                         std::function<bool(absl::Time, Outbox&)> work) {
  Post([this, call = std::move(call), work = std::move(work)](absl::Time now, Outbox& outbox) {
    if (calls_.contains(call->number) && work(now, outbox)) calls_.erase(call->number);
  });
}

void CallTable::CountMalformed() {
  Post([this](absl::Time, Outbox&) {
    if (std::has_single_bit(++malformed_)) {
      LogWarning("malformed_request", {{"plane", "control"}, {"count", malformed_}});
    }
  });
}

void CallTable::Ask(absl::Time now, const Call& call, Message request, Outbox& outbox) {
  request.connection = call.number;
  actor_.Receive(now, request, outbox);
}

void CallTable::Answer(const Message& reply) {
  const auto at = calls_.find(reply.connection);
  if (at != calls_.end() && at->second->Answer(reply)) calls_.erase(at);
}

void CallTable::Post(const std::function<void(absl::Time, Outbox&)>& work) {
  while (!loop_.Post(work)) sched_yield();
}

}  // namespace covey::scheduler
