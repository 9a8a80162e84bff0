// The connections of a rank to all other ranks.

#ifndef PENSTOCK_COLLECTIVES_NET_LINKS_H_
#define PENSTOCK_COLLECTIVES_NET_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/net/address.h"
#include "collectives/net/ledger.h"
#include "collectives/net/listener.h"
#include "collectives/net/message.h"
#include "collectives/net/part_blocks.h"
#include "collectives/net/window.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/client.h"

namespace penstock::collectives {

// Sends messages to all other ranks, and tells the ledger which ranks are gone.
// A stopped process counts as gone after kSilence.
//
// Thread-safe.
class Links {
 public:
  // The silence after which a process counts as stopped. Shorter than the
  // promised two seconds, and longer than a busy machine delays a thread.
  static constexpr absl::Duration kSilence = absl::Milliseconds(1500);

  // Connects to all ranks and introduces this rank. Returns once all ranks have
  // accepted this rank and introduced themselves. This rank may then leave
  // immediately, because no other rank still waits for its answer. After
  // `timeout`, returns an error that names the missing ranks.
  static absl::StatusOr<std::unique_ptr<Links>> Connect(
      const std::vector<Address>& addresses, const std::string& digest,
      const ListenerOptions& options, std::shared_ptr<Ledger> ledger,
      absl::Duration timeout);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Ends the connections.
  ~Links() = default;

  // Sends a copy of the `bytes` bytes at `data`. The part counts in `window`
  // until the peer has acknowledged it. Returns RESOURCE_EXHAUSTED if there is
  // no memory. A lost message ends the group.
  absl::Status SendPart(int to, const Key& key, const CallWords& words,
                        const void* data, size_t bytes,
                        const std::shared_ptr<Window>& window);
  // Like SendPart(), but sends the bytes without a copy. Their owner must keep
  // them alive and unchanged.
  void SendOwnedPart(int to, const Key& key, const CallWords& words,
                     memory::Bytes bytes,
                     const std::shared_ptr<Window>& window);
  // Ends the connection to a rank. Unsent messages to this rank are lost, and
  // soon release their memory.
  void Disconnect(int peer);
  // Sends a message without a payload, unless the peer is gone.
  void Send(int to, const Message& message);
  void SendToAll(const Message& message);
  // Waits until all peers, except for those that are gone, have received all
  // messages. Waits at most for `most`.
  void Flush(absl::Duration most);

  // Returns "shm", "verbs" or "tcp", or "none" if the peer is gone.
  std::string PathTo(int peer) const;

 private:
  explicit Links(std::shared_ptr<Ledger> ledger) : ledger_(std::move(ledger)) {}

  absl::Status Open(int peer, const Address& address,
                    const ListenerOptions& options, absl::Duration timeout);
  absl::Status Introduce(const std::string& digest, absl::Duration timeout);
  void Call(int to, const Message& message, memory::Payload payload,
            const std::shared_ptr<Window>& window);

  const std::shared_ptr<Ledger> ledger_;
  const std::shared_ptr<PartBlocks> blocks_ = std::make_shared<PartBlocks>();
  // The client for each rank; null for this rank.
  std::vector<std::unique_ptr<rpc::Client>> clients_;
  // The open calls to each rank, which cost 1 each.
  std::vector<std::shared_ptr<Window>> calls_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_LINKS_H_
