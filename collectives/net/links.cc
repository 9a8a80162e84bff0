#include "collectives/net/links.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "collectives/fault.h"
#include "collectives/net/address.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"
#include "collectives/net/window.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/call.h"
#include "transport/rpc/client.h"

namespace penstock::collectives {
namespace {

// The method of all calls, and the longest sleep between two checks of the
// clock.
constexpr char kMethod[] = "penstock.collectives";
constexpr absl::Duration kNap = absl::Milliseconds(20);

// Returns the settings of keepalive. A stopped process is detected after two
// intervals, kSilence together: one without input, and one without an answer to
// a ping.
connection::Keepalive::Config Pings() {
  connection::Keepalive::Config config = rpc::DefaultKeepalive();
  config.time = Links::kSilence / 3;
  config.timeout = Links::kSilence - config.time;
  return config;
}

Fault FaultOf(const absl::Status& lost) {
  return absl::StrContains(lost.message(), "keepalive watchdog")
             ? Fault::kSilent
             : Fault::kDied;
}

// The answers of the other ranks to this rank's introduction. Thread-safe.
class Answers {
 public:
  explicit Answers(std::shared_ptr<Ledger> ledger)
      : ledger_(std::move(ledger)), accepted_(ledger_->ranks(), false) {}

  void Take(int peer, const absl::Status& answer) {
    // Counts a rank that has left as one that has accepted this rank: it had
    // formed the group, and so had accepted this rank.
    const bool accepted =
        answer.ok() || (absl::IsUnavailable(answer) &&
                        ledger_->HasLeft(peer, Ledger::kAnyOperation));
    {
      base::MutexLock lock(&mu_);
      accepted_[peer] = accepted;
      if (!accepted && refused_.ok()) {
        refused_ = absl::Status(
            answer.code(), absl::StrCat("rank ", peer, ": ", answer.message()));
      }
    }
    ledger_->signal().Notify();
  }

  // Returns the ranks that have not accepted this rank yet, or have not
  // introduced themselves. Returns the error of a rank that has refused this
  // rank.
  absl::StatusOr<std::vector<int>> Missing() {
    base::MutexLock lock(&mu_);
    if (!refused_.ok()) return refused_;
    std::vector<int> missing;
    for (int peer = 0; peer < ledger_->ranks(); ++peer) {
      if (peer == ledger_->rank()) continue;
      if (!accepted_[peer] || !ledger_->HasCome(peer)) missing.push_back(peer);
    }
    return missing;
  }

 private:
  const std::shared_ptr<Ledger> ledger_;
  base::Mutex mu_;
  std::vector<bool> accepted_ ABSL_GUARDED_BY(mu_);
  absl::Status refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Links>> Links::Connect(
    const std::vector<Address>& addresses, const std::string& digest,
    const ListenerOptions& options, std::shared_ptr<Ledger> ledger,
    absl::Duration timeout) {
  std::unique_ptr<Links> links(new Links(std::move(ledger)));
  for (size_t peer = 0; peer < addresses.size(); ++peer) {
    links->clients_.push_back(nullptr);
    links->calls_.push_back(std::make_shared<Window>());
    if (static_cast<int>(peer) == links->ledger_->rank()) continue;
    const absl::Status opened =
        links->Open(static_cast<int>(peer), addresses[peer], options, timeout);
    if (!opened.ok()) return opened;
  }
  const absl::Status introduced = links->Introduce(digest, timeout);
  if (!introduced.ok()) return introduced;
  return links;
}

absl::Status Links::Open(int peer, const Address& address,
                         const ListenerOptions& options,
                         absl::Duration timeout) {
  rpc::Client::Options client;
  client.target = address.target;
  client.token = address.token;
  client.settings = options.settings;
  client.polling = options.polling;
  client.connect_timeout = timeout;
  client.keepalive = Pings();
  auto connected = rpc::Client::Connect(
      client, [ledger = ledger_, peer](const absl::Status& lost) {
        ledger->OnGone(peer, FaultOf(lost));
      });
  if (!connected.ok()) return connected.status();
  clients_[peer] = *std::move(connected);
  return absl::OkStatus();
}

absl::Status Links::Introduce(const std::string& digest,
                              absl::Duration timeout) {
  const absl::Time deadline = base::SteadyNow() + timeout;
  Message hello;
  hello.from = static_cast<uint32_t>(ledger_->rank());
  hello.text = digest;
  auto answers = std::make_shared<Answers>(ledger_);
  for (int peer = 0; peer < ledger_->ranks(); ++peer) {
    if (clients_[peer] == nullptr) continue;
    clients_[peer]->Call({kMethod, Encode(hello), {}},
                         [answers, peer](absl::StatusOr<rpc::Response> got) {
                           answers->Take(peer, got.status());
                         });
  }
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    const absl::StatusOr<std::vector<int>> missing = answers->Missing();
    if (!missing.ok() || missing->empty()) return missing.status();
    absl::Status status = ledger_->status();
    if (!status.ok()) return status;
    if (base::SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "these ranks did not come: ", absl::StrJoin(*missing, ", ")));
    }
    ledger_->signal().Await(seen, kNap);
  }
}

void Links::Call(int to, const Message& message, memory::Payload payload,
                 const std::shared_ptr<Window>& window) {
  const int64_t cost = CostOfPart(payload.size());
  if (window != nullptr) window->Add(cost);
  calls_[to]->Add(1);
  clients_[to]->Call(
      {kMethod, Encode(message), std::move(payload)},
      [ledger = ledger_, to, cost, window,
       calls = calls_[to]](const absl::StatusOr<rpc::Response>& answer) {
        // Ignores a lost connection, which is reported separately.
        if (!answer.ok() && !absl::IsUnavailable(answer.status())) {
          (void)ledger->End(
              Fault::kFailed, to,
              absl::StrCat("rank ", to, ": ", answer.status().ToString()));
        }
        // Does not acknowledge a lost part. A caller that waits for the
        // acknowledgement gets the reason.
        bool awaited = calls->Remove(1);
        if (answer.ok() && window != nullptr) awaited |= window->Remove(cost);
        if (awaited) ledger->signal().Notify();
      });
}

absl::Status Links::SendPart(int to, const Key& key, const CallWords& words,
                             const void* data, size_t bytes,
                             const std::shared_ptr<Window>& window) {
  memory::Bytes copied;
  if (bytes > 0) {
    absl::StatusOr<memory::Bytes> copy = blocks_->Copy(data, bytes);
    if (!copy.ok()) return copy.status();
    copied = *std::move(copy);
  }
  SendOwnedPart(to, key, words, std::move(copied), window);
  return absl::OkStatus();
}

void Links::SendOwnedPart(int to, const Key& key, const CallWords& words,
                          memory::Bytes bytes,
                          const std::shared_ptr<Window>& window) {
  Message message;
  message.kind = Message::Kind::kPart;
  message.from = static_cast<uint32_t>(ledger_->rank());
  message.key = key;
  message.words = words;
  memory::Payload payload;
  payload.Append(std::move(bytes));
  Call(to, message, std::move(payload), window);
}

void Links::Disconnect(int peer) { clients_[peer]->Close(); }

void Links::Send(int to, const Message& message) {
  if (clients_[to] == nullptr || ledger_->IsGone(to)) return;
  Call(to, message, {}, nullptr);
}

void Links::SendToAll(const Message& message) {
  for (int peer = 0; peer < ledger_->ranks(); ++peer) Send(peer, message);
}

void Links::Flush(absl::Duration most) {
  const absl::Time deadline = base::SteadyNow() + most;
  while (base::SteadyNow() < deadline) {
    const uint32_t seen = ledger_->signal().count();
    bool waits = false;
    for (int peer = 0; peer < ledger_->ranks(); ++peer) {
      waits |= !calls_[peer]->IsBelow(1) && !ledger_->IsGone(peer);
    }
    if (!waits) return;
    ledger_->signal().Await(seen, kNap);
  }
}

std::string Links::PathTo(int peer) const {
  if (clients_[peer] == nullptr) return "none";
  const auto path = clients_[peer]->DescribePath();
  return path.has_value() ? std::string(path->fabric) : "none";
}

}  // namespace penstock::collectives
