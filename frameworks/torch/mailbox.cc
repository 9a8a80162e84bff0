#include "frameworks/torch/mailbox.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "frameworks/torch/workers.h"
#include "penstock/options.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"
#include "transport/base/token.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/call.h"
#include "transport/rpc/client.h"
#include "transport/rpc/server.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace pytorch {
namespace {

// Messages above this size are copied on a separate thread, not on the
// connections' thread.
constexpr size_t kCopiedAtOnce = 64 * 1024;

std::string NameOf(int rank) { return absl::StrCat("rank ", rank); }

}  // namespace

struct Mailbox::Match {
  Letter letter;
  Slot slot;
};

// A rank's port, as the ranks exchange it.
struct Mailbox::Address {
  char host[60];  // numeric, ends with 0
  int32_t port;   // 0: the rank has no mailbox
  char token[base::kTokenBytes];
};

struct Mailbox::State : std::enable_shared_from_this<State> {
  int rank = 0;
  Workers* workers = nullptr;
  Settings settings;
  std::vector<Address> addresses;

  base::Mutex mu;
  absl::Status end ABSL_GUARDED_BY(mu);
  std::vector<Peer> peers ABSL_GUARDED_BY(mu);
  std::list<Letter> letters ABSL_GUARDED_BY(mu);
  std::list<Slot> slots ABSL_GUARDED_BY(mu);
  // The number of the next message of each channel.
  std::map<Channel, uint64_t> departures ABSL_GUARDED_BY(mu);
  std::map<Channel, Arrivals> arrivals ABSL_GUARDED_BY(mu);
  // The number of operations whose `done` has not run.
  int pending ABSL_GUARDED_BY(mu) = 0;
  std::condition_variable_any ended;

  // Connects to a rank, once. Returns the error if that rank cannot be reached.
  absl::Status Connect(int peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  absl::Status CheckSender(int from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void OnLost(int peer, const absl::Status& why);
  void OnCall(const std::shared_ptr<rpc::IncomingCall>& call);
  // Stores a message until its predecessors have arrived. Adds all messages
  // that may now be delivered to `matches`, with their receives.
  absl::Status Arrive(uint64_t number, Letter letter, std::list<Match>* matches)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Take(Letter letter, std::list<Match>* matches)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Deliver(const Letter& letter, const Slot& slot);
  // Ends an operation that counts as pending.
  void Finish(const Done& done, const absl::Status& status, int source);
};

void Mailbox::State::Finish(const Done& done, const absl::Status& status,
                            int source) {
  done(status, source);
  base::MutexLock lock(&mu);
  if (--pending == 0) ended.notify_all();
}

absl::Status Mailbox::State::Connect(int peer) {
  if (!end.ok()) return end;
  if (peer < 0 || peer >= static_cast<int>(peers.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank is ", peer, ", expected 0 to ", peers.size() - 1));
  }
  if (!peers[peer].lost.ok()) return peers[peer].lost;
  if (peers[peer].client != nullptr) return absl::OkStatus();
  const Address& address = addresses[peer];
  if (address.port == 0) {
    return absl::UnavailableError(
        absl::StrCat(NameOf(peer), " could not open a port for messages"));
  }
  rpc::Client::Options options;
  options.target = absl::StrCat(address.host, ":", address.port);
  options.token = std::string(address.token, sizeof address.token);
  options.settings = settings;
  // Limits the time for which a silent connection is kept. A rank may be
  // stopped for that long.
  options.connect_timeout = absl::Seconds(90);
  // Runs no callback, and does not block.
  auto client = rpc::Client::Connect(
      options, [self = shared_from_this(), peer](const absl::Status& why) {
        self->OnLost(peer, why);
      });
  if (!client.ok()) return client.status();
  peers[peer].client = *std::move(client);
  return absl::OkStatus();
}

// Returns the error of a receive whose sender is gone. A receive from any rank
// fails if no rank is left.
absl::Status Mailbox::State::CheckSender(int from) {
  if (from != kAnyRank) return Connect(from);
  absl::Status last = absl::UnavailableError("there is no other rank");
  bool some = false;
  for (int peer = 0; peer < static_cast<int>(peers.size()); ++peer) {
    if (peer == rank) continue;
    absl::Status status = Connect(peer);
    some = some || status.ok();
    if (!status.ok()) last = status;
  }
  return some ? absl::OkStatus() : last;
}

void Mailbox::State::OnLost(int peer, const absl::Status& why) {
  std::list<Slot> failed;
  absl::Status lost;
  {
    base::MutexLock lock(&mu);
    lost = absl::UnavailableError(absl::StrCat(
        NameOf(peer), " has died or left the group (", why.message(), ")"));
    peers[peer].lost = lost;
    for (auto slot = slots.begin(); slot != slots.end();) {
      const auto next = std::next(slot);
      const bool all_lost =
          slot->from == kAnyRank && !CheckSender(kAnyRank).ok();
      if (slot->from == peer || all_lost) {
        failed.splice(failed.end(), slots, slot);
      }
      slot = next;
    }
  }
  for (const Slot& slot : failed) Finish(slot.done, lost, slot.from);
}

void Mailbox::State::OnCall(const std::shared_ptr<rpc::IncomingCall>& call) {
  const std::vector<std::string> head =
      absl::StrSplit(call->request().metadata, ' ');
  Letter letter{0, 0, false, call};
  uint64_t number = 0;
  std::list<Match> matches;
  absl::Status status = absl::InvalidArgumentError("malformed message");
  const bool well_formed =
      head.size() == 4 && absl::SimpleAtoi(head[0], &letter.from) &&
      absl::SimpleAtoi(head[1], &letter.tag) &&
      absl::SimpleAtoi(head[2], &number) &&
      absl::SimpleAtob(head[3], &letter.is_void) && letter.from >= 0 &&
      letter.from < static_cast<int>(addresses.size());
  if (well_formed) {
    base::MutexLock lock(&mu);
    status = end.ok() ? Arrive(number, std::move(letter), &matches) : end;
  }
  if (!status.ok()) return call->Respond(status);
  for (const Match& match : matches) Deliver(match.letter, match.slot);
}

absl::Status Mailbox::State::Arrive(uint64_t number, Letter letter,
                                    std::list<Match>* matches) {
  Arrivals& channel = arrivals[{letter.from, letter.tag % kChannels}];
  if (number < channel.next && letter.is_void) return absl::OkStatus();
  if (number < channel.next ||
      !channel.early.emplace(number, std::move(letter)).second) {
    return absl::InvalidArgumentError("a message has come twice");
  }
  auto first = channel.early.begin();
  for (; first != channel.early.end() && first->first == channel.next;
       first = channel.early.erase(first), ++channel.next) {
    if (!first->second.is_void) Take(std::move(first->second), matches);
  }
  return absl::OkStatus();
}

void Mailbox::State::Take(Letter letter, std::list<Match>* matches) {
  const auto slot =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& one) {
        return one.tag == letter.tag &&
               (one.from == letter.from || one.from == kAnyRank);
      });
  if (slot == slots.end()) return letters.push_back(std::move(letter));
  matches->push_back({std::move(letter), std::move(*slot)});
  slots.erase(slot);
}

void Mailbox::State::Deliver(const Letter& letter, const Slot& slot) {
  const auto take = [self = shared_from_this(), letter, slot] {
    const absl::Status status =
        slot.take(letter.from, letter.call->request().payload);
    letter.call->Respond(
        status.ok() ? absl::StatusOr<rpc::Response>(rpc::Response()) : status);
    self->Finish(slot.done, status, letter.from);
  };
  if (letter.call->request().payload.size() <= kCopiedAtOnce) {
    take();
  } else {
    workers->Run(take);
  }
}

absl::StatusOr<std::unique_ptr<Mailbox>> Mailbox::Open(
    collectives::Group* group, const std::string& address, Workers* workers) {
  auto state = std::make_shared<State>();
  state->rank = group->rank();
  state->workers = workers;
  state->addresses.resize(group->ranks());
  {
    base::MutexLock lock(&state->mu);
    state->peers.resize(group->ranks());
  }
  absl::StatusOr<Settings> settings = ResolveSettings(Options());
  absl::StatusOr<std::string> token = base::NewToken();
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      absl::UnknownError("not started");
  if (settings.ok() && token.ok()) {
    state->settings = *settings;
    rpc::Server::Options options;
    options.address = absl::StrCat(address, ":0");
    options.token = *token;
    options.settings = *settings;
    options.max_receive_bytes = std::numeric_limits<int64_t>::max();
    server = rpc::Server::Start(
        options, [state](std::shared_ptr<rpc::IncomingCall> call) {
          state->OnCall(std::move(call));
        });
  }
  // Tells the other ranks even if this rank has no port, because they wait for
  // the address.
  Address own = {};
  if (server.ok() && address.size() < sizeof own.host) {
    address.copy(own.host, address.size());
    own.port = (*server)->port();
    std::memcpy(own.token, token->data(), sizeof own.token);
  }
  absl::Status told =
      group->AllGather(tensor::DType::kUint8, &own, state->addresses.data(),
                       static_cast<int64_t>(sizeof own));
  if (!told.ok()) return told;
  for (Address& one : state->addresses) one.host[sizeof one.host - 1] = 0;
  if (!settings.ok()) return settings.status();
  if (!server.ok()) return server.status();
  return std::unique_ptr<Mailbox>(
      new Mailbox(std::move(state), *std::move(server)));
}

Mailbox::~Mailbox() {
  End(absl::CancelledError("the group is gone"));
  base::MutexLock lock(&state_->mu);
  while (state_->pending > 0) state_->ended.wait(state_->mu);
}

void Mailbox::Send(int to, uint32_t tag, memory::Payload message, Done done) {
  std::shared_ptr<rpc::Client> client;
  uint64_t number = 0;
  absl::Status status;
  {
    base::MutexLock lock(&state_->mu);
    ++state_->pending;
    status = state_->Connect(to);
    if (status.ok()) {
      client = state_->peers[to].client;
      number = state_->departures[{to, tag % kChannels}]++;
    }
  }
  if (!status.ok()) return state_->Finish(done, status, state_->rank);
  const auto head = [rank = state_->rank, tag, number](bool is_void) {
    rpc::Request request;
    request.method = "message";
    request.metadata = absl::StrCat(rank, " ", tag, " ", number, " ", is_void);
    return request;
  };
  rpc::Request request = head(false);
  request.payload = std::move(message);
  client->Call(
      std::move(request), [done = std::move(done), state = state_, head,
                           peer = std::weak_ptr<rpc::Client>(client)](
                              const absl::StatusOr<rpc::Response>& answer) {
        // If the call failed, sends a void letter with the number of the
        // message, because the receiver may not have received the message.
        const auto kept = answer.ok() ? nullptr : peer.lock();
        if (kept != nullptr) {
          kept->Call(head(true), [](const absl::StatusOr<rpc::Response>&) {});
        }
        state->Finish(done, answer.status(), state->rank);
      });
}

void Mailbox::Receive(int from, uint32_t tag, void* into, int64_t size,
                      Done done) {
  const auto copy = [rank = state_->rank, into, size](
                        int source, const memory::Payload& message) {
    const auto sent = static_cast<int64_t>(message.size());
    if (sent != size) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(source), " sends ", sent, " bytes, and ",
                       NameOf(rank), " expects ", size));
    }
    message.CopyTo(static_cast<uint8_t*>(into));
    return absl::OkStatus();
  };
  Receive(from, tag, copy, std::move(done));
}

void Mailbox::Receive(int from, uint32_t tag, Take take, Done done) {
  Slot slot{from, tag, std::move(take), std::move(done)};
  std::list<Letter> taken;
  absl::Status status;
  {
    base::MutexLock lock(&state_->mu);
    ++state_->pending;
    auto& letters = state_->letters;
    const auto letter =
        std::find_if(letters.begin(), letters.end(), [&](const Letter& one) {
          return one.tag == tag && (from == kAnyRank || one.from == from);
        });
    if (letter != letters.end() && state_->end.ok()) {
      taken.splice(taken.end(), letters, letter);
    } else {
      status = state_->CheckSender(from);
      if (status.ok()) state_->slots.push_back(slot);
    }
  }
  if (!taken.empty()) return state_->Deliver(taken.front(), slot);
  if (!status.ok()) state_->Finish(slot.done, status, from);
}

void Mailbox::End(const absl::Status& why) {
  std::vector<Peer> peers;
  std::list<Letter> letters;
  std::list<Slot> slots;
  std::map<Channel, Arrivals> arrivals;
  std::unique_ptr<rpc::Server> server;
  {
    base::MutexLock lock(&state_->mu);
    if (!state_->end.ok()) return;
    state_->end = why;
    server = std::move(server_);
    letters.swap(state_->letters);
    arrivals.swap(state_->arrivals);
    slots.swap(state_->slots);
    for (Peer& peer : state_->peers) {
      peers.emplace_back();
      peers.back().client = std::move(peer.client);
    }
  }
  // Ends the peers' connections, and with them their receives from this rank.
  server.reset();
  for (const Slot& slot : slots) state_->Finish(slot.done, why, slot.from);
}

}  // namespace pytorch
}  // namespace penstock
