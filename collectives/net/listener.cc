#include "collectives/net/listener.h"

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
#include "collectives/net/address.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"
#include "collectives/net/targets.h"
#include "transport/base/mutex.h"
#include "transport/base/token.h"
#include "transport/memory/destinations.h"
#include "transport/rpc/call.h"
#include "transport/rpc/server.h"

namespace penstock::collectives {
namespace {

using IncomingCall = std::shared_ptr<rpc::IncomingCall>;

// Limits the calls of ranks that call before this rank has started to form its
// group.
constexpr size_t kMaxEarly = 4096;

}  // namespace

// Handles calls, on the thread of transport/rpc's callbacks.
class Listener::Door {
 public:
  void Handle(IncomingCall call) {
    absl::StatusOr<Message> message = DecodeMessage(call->request().metadata);
    if (!message.ok()) return call->Respond(message.status());
    const bool has_elements = call->request().payload.size() > 0;
    if (has_elements && message->kind != Message::Kind::kPart) {
      return call->Respond(
          absl::InvalidArgumentError("a rank's message has elements"));
    }
    std::shared_ptr<Ledger> ledger;
    {
      base::MutexLock lock(&mu_);
      ledger = ledger_;
      if (ledger == nullptr && message->kind == Message::Kind::kHello &&
          early_.size() < kMaxEarly) {
        return early_.push_back(std::move(call));
      }
    }
    if (ledger == nullptr) {
      return call->Respond(
          absl::FailedPreconditionError("this rank has not formed its group"));
    }
    for (const uint32_t rank : {message->from, message->culprit}) {
      if (rank < static_cast<uint32_t>(ledger->ranks())) continue;
      return call->Respond(
          absl::InvalidArgumentError(absl::StrCat("there is no rank ", rank)));
    }
    if (message->kind == Message::Kind::kHello) {
      return Greet(*message, call.get(), ledger.get());
    }
    if (!IsOf(message->from, *call)) {
      return call->Respond(absl::PermissionDeniedError(absl::StrCat(
          "rank ", message->from, " did not come over this connection")));
    }
    Deliver(*message, call, ledger.get());
  }

  // Returns the address of the rank's socket.
  std::string ConnectionOf(int rank) {
    base::MutexLock lock(&mu_);
    return connections_[rank];
  }

  // Returns the memory that the running operation offers for a part.
  std::shared_ptr<memory::Destinations> TargetOf(const rpc::Request& head,
                                                 const std::string& peer) {
    const absl::StatusOr<Message> message = DecodeMessage(head.metadata);
    if (!message.ok() || message->kind != Message::Kind::kPart) return nullptr;
    base::MutexLock lock(&mu_);
    if (targets_ == nullptr || message->from >= connections_.size() ||
        connections_[message->from] != peer) {
      return nullptr;
    }
    return targets_->Claim(static_cast<int>(message->from), message->key);
  }

  void Admit(std::shared_ptr<Ledger> ledger, const std::string& digest,
             std::shared_ptr<Targets> targets) {
    std::vector<IncomingCall> early;
    {
      base::MutexLock lock(&mu_);
      digest_ = digest;
      targets_ = std::move(targets);
      connections_.resize(ledger->ranks());
      ledger_ = std::move(ledger);
      early.swap(early_);
    }
    for (IncomingCall& call : early) Handle(std::move(call));
  }

 private:
  // Handles a message that is not a hello.
  void Deliver(const Message& message, const IncomingCall& call,
               Ledger* ledger) {
    const auto from = static_cast<int>(message.from);
    switch (message.kind) {
      case Message::Kind::kHello:
        break;
      case Message::Kind::kPart:
        return ledger->OnPart(from, message.key,
                              {message.words, call->TakePayload(),
                               [call] { call->Respond(rpc::Response()); }});
      case Message::Kind::kNotice:
        ledger->OnNotice(from, message.key.number, message.words);
        break;
      case Message::Kind::kFailure:
        ledger->OnFailure(from, message);
        break;
      case Message::Kind::kLeave:
        ledger->OnLeave(from, message.key.number);
        break;
    }
    call->Respond(rpc::Response());
  }

  void Greet(const Message& hello, rpc::IncomingCall* call, Ledger* ledger) {
    const absl::Status bound = Bind(hello, *call, ledger->rank());
    if (!bound.ok()) return call->Respond(bound);
    call->Respond(rpc::Response());
    ledger->OnHello(static_cast<int>(hello.from));
  }

  // Binds the rank to the connection of its first hello. Refuses a second
  // connection of a rank, and a second rank of a connection.
  absl::Status Bind(const Message& hello, const rpc::IncomingCall& call,
                    int own) {
    base::MutexLock lock(&mu_);
    if (hello.text != digest_) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", hello.from, " has other addresses than rank ",
                       own, ": is a rank given twice?"));
    }
    std::string& connection = connections_[hello.from];
    if (!connection.empty() || static_cast<int>(hello.from) == own) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", hello.from, " has come already"));
    }
    if (std::find(connections_.begin(), connections_.end(), call.peer()) !=
        connections_.end()) {
      return absl::FailedPreconditionError(
          "another rank has come over this connection");
    }
    connection = call.peer();
    return absl::OkStatus();
  }

  // Returns true if the rank has introduced itself over the call's connection.
  bool IsOf(uint32_t rank, const rpc::IncomingCall& call) {
    base::MutexLock lock(&mu_);
    return connections_[rank] == call.peer();
  }

  base::Mutex mu_;
  std::shared_ptr<Ledger> ledger_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Targets> targets_ ABSL_GUARDED_BY(mu_);
  std::string digest_ ABSL_GUARDED_BY(mu_);
  // The address of each rank's socket, by rank. Empty until the rank has
  // introduced itself. Two open connections to this listener have different
  // addresses.
  std::vector<std::string> connections_ ABSL_GUARDED_BY(mu_);
  std::vector<IncomingCall> early_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(
    const ListenerOptions& options) {
  absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  auto door = std::make_shared<Door>();
  std::unique_ptr<Listener> listener(new Listener(options, door));
  rpc::Server::Options server;
  server.address = absl::StrCat(options.host, ":0");
  server.token = *token;
  server.settings = options.settings;
  server.polling = options.polling;
  server.max_receive_bytes = kMaxPartBytes;
  server.placer = [door](const rpc::Request& head, const std::string& peer) {
    return door->TargetOf(head, peer);
  };
  auto started = rpc::Server::Start(
      server, [door](IncomingCall call) { door->Handle(std::move(call)); });
  if (!started.ok()) return started.status();
  listener->server_ = *std::move(started);
  const std::string target =
      absl::StrCat(options.host, ":", listener->server_->port());
  listener->address_ =
      ToText({target, *std::move(token),
              options.neighbourhood.empty() ? HostOfProcess()
                                            : options.neighbourhood});
  return listener;
}

Listener::~Listener() = default;

void Listener::Disconnect(int rank) {
  server_->Disconnect(door_->ConnectionOf(rank));
}

void Listener::Admit(std::shared_ptr<Ledger> ledger, const std::string& digest,
                     std::shared_ptr<Targets> targets) {
  door_->Admit(std::move(ledger), digest, std::move(targets));
}

}  // namespace penstock::collectives
