#include "collectives/net/assembly.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/net/message.h"
#include "collectives/net/signal.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_notification.h"
#include "transport/base/steady_time.h"
#include "transport/rpc/call.h"
#include "transport/rpc/client.h"
#include "transport/rpc/server.h"

namespace penstock::collectives {
namespace {

using IncomingCall = std::shared_ptr<rpc::IncomingCall>;
using Kind = Message::Kind;

constexpr char kMethod[] = "penstock.collectives";
// Limits the sleep between two checks of the clock.
constexpr absl::Duration kNap = absl::Milliseconds(20);
// The pause between two attempts to reach rank 0.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// Limits the time that rank 0 takes to tell the other ranks why it gives up.
constexpr absl::Duration kFarewell = absl::Seconds(1);
// Limits the open calls of a rank at rank 0. Penstock's own ranks have one.
constexpr uint32_t kMaxCalls = 4;

// The seats of the ranks at rank 0. Thread-safe.
class Hall {
 public:
  Hall(const AssemblyOptions& options, const std::string& own)
      : seats_(options.ranks) {
    seats_[0].address = own;
  }

  Signal& signal() { return signal_; }

  // Answers a call, or holds it until all ranks have called.
  void Handle(const std::shared_ptr<Hall>& self, const IncomingCall& call) {
    const absl::StatusOr<Message> message =
        DecodeMessage(call->request().metadata);
    if (!message.ok()) return call->Respond(message.status());
    if (message->kind == Kind::kLeave) {
      if (!OnLeave(message->from, call->peer())) {
        return call->Respond(absl::PermissionDeniedError(absl::StrCat(
            "rank ", message->from, " did not come over this connection")));
      }
      return call->Respond(rpc::Response());
    }
    const absl::Status seated = Sit(*message, call);
    if (!seated.ok()) return call->Respond(seated);
    const uint32_t rank = message->from;
    call->OnCancel([self, rank, key = call.get()] { self->Free(rank, key); });
    signal_.Notify();
  }

  std::vector<std::string> Addresses() {
    base::MutexLock lock(&mu_);
    std::vector<std::string> addresses;
    for (const Seat& seat : seats_) addresses.push_back(seat.address);
    return addresses;
  }

  // Returns true once all ranks have called.
  bool IsFull() {
    base::MutexLock lock(&mu_);
    return MissingLocked().empty();
  }

  // Sends all ranks the addresses. Their seats stay occupied afterwards.
  void AnswerAll() {
    const std::string addresses = absl::StrJoin(Addresses(), "\n");
    std::vector<IncomingCall> calls;
    {
      base::MutexLock lock(&mu_);
      calls = TakeCallsLocked();
    }
    for (const IncomingCall& call : calls) {
      call->Respond(rpc::Response{addresses, {}});
    }
  }

  // Returns OK if all ranks have called. Otherwise sends the ranks that have
  // called an error with the missing ranks, and returns this error.
  absl::Status GiveUp() {
    absl::Status why;
    std::vector<IncomingCall> calls;
    {
      base::MutexLock lock(&mu_);
      const std::vector<int> missing = MissingLocked();
      if (missing.empty()) return absl::OkStatus();
      why = absl::DeadlineExceededError(absl::StrCat(
          "these ranks did not come: ", absl::StrJoin(missing, ", ")));
      has_given_up_ = true;
      calls = TakeCallsLocked();
    }
    for (const IncomingCall& call : calls) call->Respond(why);
    return why;
  }

  // Returns true once all ranks have left. A rank leaves after it has received
  // the addresses.
  bool AllHaveLeft() {
    base::MutexLock lock(&mu_);
    return std::none_of(seats_.begin(), seats_.end(),
                        [](const Seat& seat) { return seat.is_answered; });
  }

 private:
  struct Seat {
    std::string address;  // empty: free
    std::string peer;     // of the connection over which the rank came
    IncomingCall call;
    bool is_answered = false;  // and has not left
  };

  std::vector<int> MissingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<int> missing;
    for (size_t rank = 0; rank < seats_.size(); ++rank) {
      if (seats_[rank].address.empty()) {
        missing.push_back(static_cast<int>(rank));
      }
    }
    return missing;
  }

  std::vector<IncomingCall> TakeCallsLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<IncomingCall> calls;
    for (Seat& seat : seats_) {
      seat.is_answered = seat.call != nullptr;
      if (seat.is_answered) calls.push_back(std::move(seat.call));
      seat.call = nullptr;
    }
    return calls;
  }

  absl::Status Sit(const Message& hello, const IncomingCall& call) {
    base::MutexLock lock(&mu_);
    if (has_given_up_) return absl::UnavailableError("rank 0 has given up");
    if (hello.kind != Kind::kHello || hello.text.empty()) {
      return absl::InvalidArgumentError("malformed message of a rank");
    }
    if (hello.key.number != seats_.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", hello.from, " expects ", hello.key.number,
                       " ranks, rank 0 expects ", seats_.size()));
    }
    if (hello.from == 0 || hello.from >= seats_.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("there is no rank ", hello.from, " to come"));
    }
    Seat& seat = seats_[hello.from];
    if (!seat.address.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", hello.from, " has come already"));
    }
    seat = {hello.text, call->peer(), call};
    return absl::OkStatus();
  }

  // Frees the seat of a rank that died before the group formed.
  void Free(uint32_t rank, const rpc::IncomingCall* call) {
    base::MutexLock lock(&mu_);
    if (seats_[rank].call.get() == call) seats_[rank] = Seat();
  }

  // Returns false if the rank has not come over the connection of `peer`.
  bool OnLeave(uint32_t rank, const std::string& peer) {
    {
      base::MutexLock lock(&mu_);
      if (rank >= seats_.size() || seats_[rank].peer != peer) return false;
      seats_[rank].is_answered = false;
    }
    signal_.Notify();
    return true;
  }

  Signal signal_{progress::PollingMode::kEvent};
  base::Mutex mu_;
  std::vector<Seat> seats_ ABSL_GUARDED_BY(mu_);  // by rank
  bool has_given_up_ ABSL_GUARDED_BY(mu_) = false;
};

// Ends the server after it has delivered its answers, or after kFarewell.
void Farewell(rpc::Server* server) {
  const auto delivered = std::make_shared<base::SteadyNotification>();
  server->Shutdown(kFarewell, [delivered] { delivered->Notify(); });
  delivered->WaitFor(kFarewell);
}

absl::StatusOr<std::vector<std::string>> Receive(const AssemblyOptions& options,
                                                 const std::string& own) {
  const absl::Time deadline = base::SteadyNow() + options.timeout;
  auto hall = std::make_shared<Hall>(options, own);
  rpc::Server::Options server;
  server.address = options.target;
  server.token = options.token;
  server.max_receive_bytes = 0;  // the messages have no payload
  server.max_calls = kMaxCalls;
  const auto started = rpc::Server::Start(
      server, [hall](const IncomingCall& call) { hall->Handle(hall, call); });
  if (!started.ok()) return started.status();
  while (true) {
    const uint32_t seen = hall->signal().count();
    if (hall->IsFull()) break;
    if (base::SteadyNow() >= deadline) {
      absl::Status given_up = hall->GiveUp();
      if (given_up.ok()) break;
      Farewell(started->get());
      return given_up;
    }
    hall->signal().Await(seen, kNap);
  }
  hall->AnswerAll();
  // Waits until the answers are delivered, because the end of the server would
  // drop answers in flight.
  while (base::SteadyNow() < deadline) {
    const uint32_t seen = hall->signal().count();
    if (hall->AllHaveLeft()) break;
    hall->signal().Await(seen, kNap);
  }
  return hall->Addresses();
}

// Calls rank 0 once, and waits for the answer.
absl::StatusOr<rpc::Response> Ask(rpc::Client* client, const Message& message,
                                  absl::Duration timeout) {
  struct Answer {
    Signal signal{progress::PollingMode::kEvent};
    base::Mutex mu;
    absl::optional<absl::StatusOr<rpc::Response>> value ABSL_GUARDED_BY(mu);
  };
  auto answer = std::make_shared<Answer>();
  client->Call({kMethod, Encode(message), {}, timeout},
               [answer](absl::StatusOr<rpc::Response> got) {
                 {
                   base::MutexLock lock(&answer->mu);
                   answer->value = std::move(got);
                 }
                 answer->signal.Notify();
               });
  while (true) {
    const uint32_t seen = answer->signal.count();
    {
      base::MutexLock lock(&answer->mu);
      if (answer->value.has_value()) return *std::move(answer->value);
    }
    answer->signal.Await(seen, kNap);
  }
}

absl::StatusOr<std::vector<std::string>> Come(const AssemblyOptions& options,
                                              const std::string& own) {
  const absl::Time deadline = base::SteadyNow() + options.timeout;
  Message message;
  message.from = static_cast<uint32_t>(options.rank);
  message.key.number = static_cast<uint64_t>(options.ranks);
  message.text = own;
  rpc::Client::Options reach;
  reach.target = options.target;
  reach.token = options.token;
  const auto late = [&options](const absl::Status& why) {
    return absl::DeadlineExceededError(
        absl::StrCat("rank 0 at ", options.target, ": ", why.message()));
  };
  absl::Status last;
  while (true) {
    const absl::Duration left = deadline - base::SteadyNow();
    if (left <= absl::ZeroDuration()) return late(last);
    reach.connect_timeout = left;
    const auto client = rpc::Client::Connect(reach, [](const absl::Status&) {});
    if (!client.ok()) return client.status();
    const auto answer = Ask(client->get(), message, left);
    if (answer.ok()) {
      message.kind = Kind::kLeave;
      (void)Ask(client->get(), message, left);
      return std::vector<std::string>(absl::StrSplit(answer->metadata, '\n'));
    }
    last = answer.status();
    if (absl::IsDeadlineExceeded(last)) return late(last);
    // Repeats the request if rank 0 has not started yet, or is gone.
    if (!absl::IsUnavailable(last)) {
      return absl::Status(last.code(),
                          absl::StrCat("rank 0 refuses: ", last.message()));
    }
    absl::SleepFor(std::min(kPause, left));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExchangeAddresses(
    const AssemblyOptions& options, const std::string& own) {
  if (options.rank < 0 || options.rank >= options.ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", options.rank, ", expected 0 to ", options.ranks - 1));
  }
  return options.rank == 0 ? Receive(options, own) : Come(options, own);
}

}  // namespace penstock::collectives
