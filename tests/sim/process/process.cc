// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/process.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "tests/sim/network/lent_frames.h"
#include "tests/sim/network/message_description.h"

namespace covey::sim {
namespace {

// As scheduler::Prober::Options::again_after.
constexpr absl::Duration kProbeAgainAfter = absl::Milliseconds(500);

}  // namespace

Process::Process(Simulator& simulator, SimNetwork& network, const std::vector<Observer*>& observers,
                 Options options, Factory factory)
    : simulator_(simulator),
      network_(network),
      observers_(observers),
      options_(std::move(options)),
      factory_(std::move(factory)),
      random_(simulator.Draws(Simulator::Stream::kProcess, options_.host.value())),
      clock_(options_.clock_drift) {}

void Process::Start() {
  COVEY_CHECK(!running());
  ++starts_;
  ++life_;
  incarnation_ = Incarnation(random_.Next() | 1);
  loops_.resize(options_.listening.size());
  std::vector<std::string> endpoints;
  for (size_t i = 0; i < loops_.size(); ++i) {
    endpoints.push_back(!options_.listening[i] ? ""
                        : options_.reuse_endpoints
                            ? absl::StrCat("sim://", options_.name, "/", i)
                            : absl::StrCat("sim://", options_.name, ".", starts_, "/", i));
    loops_[i].port = network_.Open(options_.host, endpoints[i],
                                   [this, i](Message message) { Arrive(i, std::move(message)); });
    network_.SetRoute(loops_[i].port, {kSchedulerNode, 0}, options_.scheduler_endpoint);
  }
  if (simulator_.tracing()) {
    simulator_.Trace(absl::StrCat("start ", options_.name, " incarnation ", incarnation_.value()));
  }
  program_ = factory_(
      {.incarnation = incarnation_, .endpoints = endpoints, .random = random_.Split(starts_)});
  const std::vector<Actor*> actors = program_->loops();
  COVEY_CHECK(actors.size() == loops_.size());
  for (size_t i = 0; i < loops_.size(); ++i) {
    loops_[i].actor = actors[i];
    Schedule(i);
  }
}

void Process::Crash() {
  if (!running()) return;
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("stop ", options_.name));
  if (options_.gone && program_->node() != NodeId()) {
    options_.gone(program_->node(), incarnation_);
  }
  ++life_;
  for (const Loop& loop : loops_) network_.Close(loop.port);
  loops_.clear();
  program_.reset();
  pauses_ = 0;
  if (options_.log != nullptr) options_.log->Stop();
  if (options_.store != nullptr) options_.store->Stop(options_.host);
}

void Process::Pause() {
  if (!running()) return;
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("pause ", options_.name));
  if (++pauses_ == 1) paused_at_ = simulator_.now();
}

void Process::Resume() {
  if (pauses_ == 0 || --pauses_ > 0) return;
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("resume ", options_.name));
  if (Planted(PlantedBug::kLeaseOnAwakeClock)) clock_.StandStill(simulator_.now() - paused_at_);
  for (size_t i = 0; i < loops_.size(); ++i) Schedule(i);
}

void Process::Hang(size_t loop) {
  if (!running() || loop >= loops_.size()) return;
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("hang ", options_.name, " loop ", loop));
  ++loops_[loop].hangs;
}

void Process::Unhang(size_t loop) {
  if (!running() || loop >= loops_.size()) return;
  if (loops_[loop].hangs == 0 || --loops_[loop].hangs > 0) return;
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("go on ", options_.name, " loop ", loop));
  Schedule(loop);
}

void Process::Arrive(size_t loop, Message message) {
  if (loops_[loop].inbox.size() >= options_.inbox_max) {
    simulator_.Count("inbox_full");
    return;
  }
  Enqueue(loop, std::move(message));
}

void Process::Enqueue(size_t loop, Message message) {
  loops_[loop].inbox.push_back(std::move(message));
  Schedule(loop);
}

void Process::Schedule(size_t index) {
  if (!running() || paused()) return;
  Loop& loop = loops_[index];
  if (loop.hangs > 0) return;
  absl::Time next = simulator_.now();
  if (loop.started && loop.inbox.empty()) {
    next = std::max(next, clock_.WhenItReads(loop.actor->NextWake()));
  }
  next = std::max(next, loop.busy_until);
  if (next >= loop.scheduled || next == absl::InfiniteFuture()) return;
  loop.scheduled = next;
  simulator_.At(next, [this, index, life = life_] {
    if (life != life_) return;
    Run(index);
  });
}

void Process::Run(size_t index) {
  Loop& loop = loops_[index];
  const absl::Time now = simulator_.now();
  if (now < loop.scheduled) return;  // An earlier event has superseded this one.
  loop.scheduled = absl::InfiniteFuture();
  if (paused() || loop.hangs > 0) return;
  const absl::Time local = clock_.Read(now);
  Outbox outbox;
  Message message;
  std::vector<LentFrames::LoanId> lent;
  if (!loop.started || loop.actor->NextWake() <= local) {
    loop.started = true;
    loop.actor->Wake(local, outbox);
  } else if (!loop.inbox.empty()) {
    message = std::move(loop.inbox.front());
    loop.inbox.pop_front();
    lent = network_.lent_frames().LoansOf(message);
    simulator_.Note(message.envelope.header().request_id() << 8 | message.envelope.body_case());
    simulator_.Note(message.envelope.ByteSizeLong());
    for (const Buffer& frame : message.frames) {
      simulator_.Note(absl::string_view(reinterpret_cast<const char*>(frame.data()), frame.size()));
    }
    if (simulator_.tracing()) {
      simulator_.Trace(absl::StrCat(options_.name, " receives ", Describe(message)));
    }
    const bool is_forged = network_.IsOfForger(message.connection);
    for (Observer* observer : observers_) {
      is_forged ? observer->OnForged(now, options_.name, message)
                : observer->OnReceive(now, options_.name, message);
    }
    loop.actor->Receive(local, message, outbox);
    for (Observer* observer : observers_) {
      is_forged ? observer->OnForgedReceived(now, options_.name, message)
                : observer->OnReceived(now, options_.name, message);
    }
    message.frames.clear();
  } else {
    return Schedule(index);
  }
  loop.busy_until = now + options_.call_cost_max * (slowness_ * random_.Uniform()) +
                    absl::Nanoseconds(1) + program_->TakeDeviceTime(index);
  Flush(index, outbox);
  if (const size_t kept = network_.lent_frames().CountInUse(lent); kept > 0) {
    for (Observer* observer : observers_) {
      observer->OnFramesKept(now, options_.name, message, kept);
    }
  }
  Conclude(index);
}

void Process::Conclude(size_t index) {
  const Program::Outcome outcome = program_->outcome();
  if (outcome == Program::Outcome::kRunning) return Schedule(index);
  Crash();
  if (options_.ended) options_.ended(outcome);
}

void Process::Post(const std::function<void(absl::Time, Outbox&)>& work) {
  if (!running() || paused()) return;
  Outbox outbox;
  work(clock_.Read(simulator_.now()), outbox);
  Flush(0, outbox);
  Conclude(0);
}

void Process::Flush(size_t index, Outbox& outbox) {
  for (auto& [peer, endpoint] : outbox.TakeRoutes()) {
    if (endpoint.empty()) {
      network_.DropRoute(loops_[index].port, peer);
    } else {
      network_.SetRoute(loops_[index].port, peer, endpoint);
    }
  }
  const NodeId self = program_->node();
  for (Message& message : outbox.TakeMessages()) {
    proto::Header& header = *message.envelope.mutable_header();
    header.set_job(options_.job);
    header.set_node(self.value());
    header.set_incarnation(incarnation_.value());
    header.set_epoch(program_->epoch().value());
    message.envelope.set_from_loop(static_cast<uint32_t>(index));
    if (message.to().loop == kDiskLoop) {
      Append(index, message);
      continue;
    }
    if (message.to().loop == kProbeLoop) {
      Probe(message, /*first=*/true);
      continue;
    }
    if (message.to().loop == kStoreLoop) {
      Store(message);
      continue;
    }
    program_->Pack(message);
    const std::optional<Message> shown = program_->Shown(message);
    const Message& seen = shown.has_value() ? *shown : message;
    const bool answers_forger = network_.IsOfForger(message.connection);
    for (Observer* observer : observers_) {
      answers_forger ? observer->OnAnswerToForger(simulator_.now(), seen)
                     : observer->OnSend(simulator_.now(), seen);
    }
    const Address to = message.to();
    if (message.connection == 0 && to.node == self && to.loop < loops_.size()) {
      Enqueue(to.loop,
              std::move(message));  // Between loops of one process no message is lost.
    } else {
      network_.Send(loops_[index].port, std::move(message));
    }
  }
}

void Process::Tell(Message message) {
  if (!running()) return;
  message.envelope.mutable_header()->set_node(program_->node().value());
  message.envelope.set_from_loop(kProbeLoop);
  Enqueue(0, std::move(message));
}

void Process::Probe(const Message& message, bool first) {
  COVEY_CHECK(message.envelope.has_probe_request() && options_.probe);
  const proto::ProbeRequest& request = message.envelope.probe_request();
  const Options::Finding finding = options_.probe(request.endpoint());
  if (finding.result == proto::ProbeReply::REFUSED && first &&
      !Planted(PlantedBug::kDeathAtFirstLook)) {
    simulator_.After(finding.after + kProbeAgainAfter, [this, life = life_, message] {
      if (life == life_) Probe(message, /*first=*/false);
    });
    return;
  }
  Message reply = MakeReply(message);
  reply.envelope.mutable_header()->set_node(program_->node().value());
  reply.envelope.set_from_loop(kProbeLoop);
  proto::ProbeReply& body = *reply.envelope.mutable_probe_reply();
  body.set_node(request.node());
  body.set_incarnation(request.incarnation());
  body.set_result(finding.result);
  const size_t loop = message.envelope.from_loop();
  simulator_.After(finding.after, [this, loop, life = life_, reply = std::move(reply)] {
    if (life == life_) Enqueue(loop, reply);
  });
}

void Process::Store(const Message& message) {
  COVEY_CHECK(message.envelope.has_store_request() && options_.store != nullptr);
  const size_t loop = message.envelope.from_loop();
  options_.store->Send(options_.host, message,
                       [this, loop](Message reply) { Enqueue(loop, std::move(reply)); });
}

void Process::Append(size_t loop, const Message& message) {
  COVEY_CHECK(message.envelope.has_disk_append() && options_.log != nullptr);
  const absl::Duration stands_still =
      options_.log->Append(message, [this, loop, life = life_](Message reply) {
        if (life == life_) Enqueue(loop, std::move(reply));
      });
  loops_[loop].busy_until = std::max(loops_[loop].busy_until, simulator_.now()) + stands_still;
}

}  // namespace covey::sim
