// Messages between the ranks of a group, with tags.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_MAILBOX_H_
#define PENSTOCK_FRAMEWORKS_TORCH_MAILBOX_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/group.h"
#include "frameworks/torch/workers.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/client.h"
#include "transport/rpc/server.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace pytorch {

// A rank's port for messages, and its connections to other ranks. Messages from
// one sender with one tag go to the receives for this sender and tag, in the
// order of the sends. A send ends when its message was received. Messages use
// the same kinds of paths as other calls of Penstock.
//
//  Thread-safe.
class Mailbox {
 public:
  static constexpr int kAnyRank = -1;
  // Runs once, on any thread, without locks. Must not block. `source` is the
  // rank of the sender.
  using Done = std::function<void(const absl::Status& status, int source)>;
  // Consumes a message of rank `source`. The result is reported to both sides.
  // Runs at most once, before Done, under the same conditions, but on a thread
  // that may spend time on copying.
  using Take =
      std::function<absl::Status(int source, const memory::Payload& message)>;

  // Opens this rank's port, and exchanges the ports of all ranks through the
  // group. All ranks call this function. `address` is the numeric address at
  // which the other ranks reach this rank. `workers` must outlive the mailbox.
  static absl::StatusOr<std::unique_ptr<Mailbox>> Open(
      collectives::Group* group, const std::string& address, Workers* workers);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  // Ends all pending operations with CANCELLED, and waits until each `done` has
  // run.
  ~Mailbox();

  // Sends a message, which keeps its memory alive and unchanged until `done`.
  // Reports UNAVAILABLE if the receiver dies or leaves, INVALID_ARGUMENT if the
  // receiver expects another size.
  void Send(int to, uint32_t tag, memory::Payload message, Done done);

  // Receives a message of `size` bytes into memory that lives until `done`.
  // Reports UNAVAILABLE if the sender dies or leaves before it sends.
  void Receive(int from, uint32_t tag, void* into, int64_t size, Done done);
  // Receives a message of any size.
  void Receive(int from, uint32_t tag, Take take, Done done);

  // Ends all present and later operations with `why`.
  void End(const absl::Status& why);

 private:
  struct Address;
  // The number of channels. Calls can overtake each other, so each message has
  // a number in the order of the sends. All tags that are equal modulo
  // kChannels form a channel, with one sequence of numbers.
  static constexpr uint32_t kChannels = 256;
  struct Channel {
    int peer;
    uint32_t number;
    bool operator<(const Channel& other) const {
      return std::tie(peer, number) < std::tie(other.peer, other.number);
    }
  };
  // A message that no receive has requested yet.
  struct Letter {
    int from;
    uint32_t tag;
    // True for a send that failed before it reached the receiver. The letter
    // has the number of the lost message, so that later messages need not wait
    // for that number.
    bool is_void;
    std::shared_ptr<rpc::IncomingCall> call;
  };
  // The messages of a channel that have arrived or are expected.
  struct Arrivals {
    uint64_t next = 0;
    std::map<uint64_t, Letter> early;  // by number, later than `next`
  };
  struct Slot {
    int from;
    uint32_t tag;
    Take take;
    Done done;
  };
  struct Peer {
    std::shared_ptr<rpc::Client> client;
    absl::Status lost;  // the reason, once the connection is over
  };
  // A message, and the receive that gets the message.
  struct Match;
  // State that callbacks share, which may outlive the mailbox.
  struct State;

  Mailbox(std::shared_ptr<State> state, std::unique_ptr<rpc::Server> server)
      : state_(std::move(state)), server_(std::move(server)) {}

  const std::shared_ptr<State> state_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_MAILBOX_H_
