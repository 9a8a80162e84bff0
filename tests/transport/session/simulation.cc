#include "tests/transport/session/simulation.h"

#include <iterator>
#include <utility>

namespace penstock {
namespace session {
namespace {

constexpr int kSteps = 1500;
// Limits the rounds of the final phase, in which each round does all work that
// can be done.
constexpr int kMaxRounds = 20000;
constexpr size_t kMaxCalls = 12;

}  // namespace

Simulation::Simulation(uint32_t seed, const SimulationOptions& options)
    : world_(seed),
      options_(options),
      version_(1 + Roll(2)),
      lifeline_(RandomLink(/*is_lifeline=*/true)) {
  MakeOwner(Side::kA);
  MakeOwner(Side::kB);
}

void Simulation::Expect(bool holds, const std::string& what) {
  if (!holds) world_.errors.push_back(what);
}

std::vector<std::string> Simulation::Run() {
  const int lost_at = options_.loses_lifeline ? Roll(kSteps) : -1;
  for (int i = 0; i < kSteps && world_.errors.empty(); ++i) {
    if (i == lost_at) LoseLifeline();
    Step();
  }
  if (world_.errors.empty()) Finish();
  if (world_.errors.empty()) {
    CheckEnd(&client_);
    CheckEnd(&server_);
    CheckPayloads();
  }
  return world_.errors;
}

void Simulation::Step() {
  Owner* const any = &owner(Pick({Side::kA, Side::kB}));
  if (static_cast<int>(Roll(1000)) < options_.path_faults) FailSomething();
  switch (Roll(12)) {
    case 0:
      OpenCall();
      break;
    case 1:
      AttachOpened(any);
      break;
    case 2:
      Connect();
      Listen();
      break;
    case 3:
      AddPath(any);
      if (Roll(4) == 0) RetryPath();
      break;
    case 4:
      if (Roll(4) == 0) ToggleArmed(any);
      break;
    case 5:
    case 6:
    case 7:
      ActSomewhere(any);
      break;
    case 8:
    case 9:
      StepLifeline(any);
      break;
    default:
      PollPath(any);
  }
  // Lets several calls come between two flushes.
  if (Roll(4) != 0) any->session->Flush();
}

void Simulation::OpenCall() {
  if (plans_.size() == kMaxCalls || !client_.session->greeted() ||
      client_.session->closed()) {
    return;
  }
  CallPlan& plan = plans_[next_stream_];
  RandomPlan(&plan);
  next_stream_ += 1 + Roll(2);
  auto call = std::make_unique<SimulatedCall>(&world_, &plan,
                                              client_.session.get(), true);
  client_.session->AttachStream(plan.stream, call.get());
  // Sends the headers, because streams must open in the order of their ids.
  call->Act(/*hurry=*/true);
  client_.calls[plan.stream] = std::move(call);
}

void Simulation::AttachOpened(Owner* owner) {
  const std::vector<uint32_t> opened = std::exchange(owner->opened, {});
  for (uint32_t stream : opened) {
    if (!owner->session->streams().IsUnattached(stream)) continue;
    auto call = std::make_unique<SimulatedCall>(&world_, &plans_[stream],
                                                owner->session.get(), false);
    SimulatedCall* const attached = call.get();
    owner->calls[stream] = std::move(call);
    owner->session->AttachStream(stream, attached);
  }
}

void Simulation::ActSomewhere(Owner* owner) {
  if (owner->calls.empty()) return;
  if (Roll(10) == 0) {
    lifeline_.SetReadOrder(owner->side, [this](size_t waiting) {
      return Roll(static_cast<uint32_t>(waiting));
    });
  }
  auto call = owner->calls.begin();
  std::advance(call, Roll(static_cast<uint32_t>(owner->calls.size())));
  if (Roll(4) == 0) call->second->LetGo();
  call->second->Act(/*hurry=*/false);
}

bool Simulation::StepLifeline(Owner* owner) {
  const bool any = lifeline_.Step(owner->side);
  if (any) owner->awake = true;  // the packet may have been a doorbell
  return any;
}

void Simulation::LoseLifeline() {
  lifeline_lost_ = true;
  for (auto& plan : plans_) plan.second.session_lost = true;
  lifeline_.Drop();
}

// Does all work that can be done now at one side. Returns false if there was no
// work.
bool Simulation::FinishSome(Owner* owner) {
  bool any = false;
  Connect();
  Listen();
  AddPath(owner);
  AttachOpened(owner);
  for (auto& call : owner->calls) {
    call.second->LetGo();
    any |= call.second->Act(/*hurry=*/true);
  }
  any |= StepLifeline(owner);
  any |= PollPath(owner);
  owner->session->Flush();
  return any;
}

void Simulation::Finish() {
  for (Owner* owner : {&client_, &server_}) {
    if (fast() != nullptr) fast()->FailNthSend(owner->side, 0);
    owner->awake = true;
  }
  bool any = true;
  int idle_rounds = 0;
  for (int i = 0; idle_rounds < 2 && i < kMaxRounds; ++i) {
    any = FinishSome(&client_);
    any |= FinishSome(&server_);
    if (!any) SendDeferred();
    idle_rounds = any ? 0 : idle_rounds + 1;
    if (!world_.errors.empty()) return;
  }
  Expect(!any, "it never ends");
}

// Sends the deferred frames, as an owner's timer does. No call may wait for
// such a frame.
void Simulation::SendDeferred() {
  for (Owner* owner : {&client_, &server_}) {
    if (!owner->session->has_deferred()) continue;
    for (auto& call : owner->calls) {
      Expect(call.second->ended(),
             "waits for a deferred frame: " + call.second->Describe());
    }
    owner->session->SendDeferred();
    owner->session->Flush();
  }
}

void Simulation::CheckEnd(Owner* owner) {
  const std::string name = owner == &client_ ? "client" : "server";
  for (auto& call : owner->calls) {
    Expect(call.second->ended(), "stuck: " + call.second->Describe());
  }
  Expect(owner->closed == (lifeline_lost_ ? 1 : 0), name + " closed");
  for (const auto& link : links_) {
    Expect(link->loans(owner->side) == 0, name + " keeps loans");
    Expect(lifeline_lost_ || link->exposed(owner->side) == 0,
           name + " still exposes on a fast path");
  }
  CheckLoans(*owner, name);
  if (lifeline_lost_) return;
  Expect(owner->reports > 0, name + " never reported a path");
  Expect(owner->session->path().Describe().fabric ==
             client_.session->path().Describe().fabric,
         "they disagree about the path");
  Expect(owner->session->drained(), name + " is not drained");
  Expect(lifeline_.exposed(owner->side) == 0, name + " still exposes");
}

// Checks that each message that the other side has lent was loaded or returned
// exactly once, unless its path was lost first.
void Simulation::CheckLoans(const Owner& owner, const std::string& name) {
  for (const auto& link : links_) {
    const auto& mine = link->counters(owner.side);
    const auto& others = link->counters(fabric::fake::Other(owner.side));
    const uint64_t ended = mine.loads + mine.given_back;
    Expect(ended <= others.exposures, name + " gave a loan back twice");
    const bool is_whole = !lifeline_lost_ && links_.size() == 1 &&
                          owner.session->path().endpoint() != nullptr;
    Expect(!is_whole || ended == others.exposures,
           name + " never gave a loan back");
  }
}

void Simulation::CheckPayloads() {
  client_.session.reset();
  server_.session.reset();
  for (const auto& payload : world_.payloads) {
    Expect(payload.expired(), "a payload was not let go");
  }
}

}  // namespace session
}  // namespace penstock
