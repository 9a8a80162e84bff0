// One-sided operations: ranks write into the memory of others, and signal.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_REMOTE_MEMORY_H_
#define PENSTOCK_FRAMEWORKS_TORCH_REMOTE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "frameworks/torch/mailbox.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace pytorch {

// One rank's side of a window. The mailbox writes the bytes that other ranks
// put, without a call of this rank's program. Operations of one rank take
// effect in the order of their calls. A thread that has received a signal
// therefore sees all earlier puts of the same rank. Each operation is one
// message, so a lost operation does not affect others.
//
//  Thread-safe. Owned by shared_ptr, because receives outlive the window. The
// mailbox must outlive all calls.
class RemoteMemory : public std::enable_shared_from_this<RemoteMemory> {
 public:
  // Runs once, on any thread, without locks. Must not block.
  using Done = std::function<void(const absl::Status& status)>;
  // Identifies a wait for a signal. Never reused.
  using Ticket = uint64_t;

  // Makes this rank's side of window `number`. All ranks pass the same number.
  // Each window of a group needs a different number, below 2^30.
  RemoteMemory(Mailbox* mailbox, int rank, int ranks, uint32_t number);

  // Starts to receive operations of other ranks. Call once.
  void Open();
  // Lets other ranks write into this memory until Detach(). `memory.owner` may
  // be null.
  void Attach(const memory::Bytes& memory);
  // Refuses later writes. Does not wait: a write in progress may continue.
  void Detach();
  // Tells all ranks that no operation of this rank follows.
  void Close();

  // Writes `bytes` at `offset` of the memory of rank `to`. Calls `done` once
  // rank `to` has the bytes, or with INVALID_ARGUMENT if its memory has no such
  // range.
  void Put(int to, int64_t offset, memory::Bytes bytes, Done done);
  // Adds a signal at rank `to`.
  void Signal(int to, Done done);
  // Consumes a signal of rank `from`. Calls `done` once there is a signal, or
  // with the reason why none comes.
  Ticket AwaitSignal(int from, Done done);
  // Ends a wait without calling its `done`. Returns false if `done` was called,
  // or is about to be called.
  bool Withdraw(int from, Ticket ticket);

 private:
  enum class Kind : int64_t { kNone = 0, kPut = 1, kSignal = 2, kClose = 3 };
  // The beginning of each message. The bytes to put follow.
  struct Header {
    Kind kind = Kind::kNone;
    int64_t offset = 0;
  };
  struct Waiter {
    Ticket ticket;
    Done done;
  };
  // The operations of one rank.
  struct Origin {
    std::atomic<int> turns{0};  // of ReceiveNext() that are left
    absl::Status end;
    int signals = 0;
    std::list<Waiter> waiters;
  };

  void Send(int to, const Header& header, memory::Bytes bytes, Done done);
  // Receives the next operation. Does not recurse, even if many operations have
  // arrived.
  void ReceiveNext(int from);
  // Reads an operation of rank `from`, and writes the bytes of a put.
  absl::Status Take(int from, const memory::Payload& message, Header* header);
  // Writes the bytes of `message` from `begin` on into this rank's memory.
  absl::Status Write(int64_t offset, const memory::Payload& message,
                     size_t begin);
  // Ends an operation of rank `from`, and begins to receive the next one.
  void OnTaken(int from, const Header& header, const absl::Status& status);
  void AddSignal(int from);
  void EndOrigin(int from, const absl::Status& why);

  Mailbox* const mailbox_;
  const int rank_;
  const uint32_t tag_;  // of all messages
  base::Mutex mu_;
  Ticket next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  memory::Bytes memory_ ABSL_GUARDED_BY(mu_);
  // `end`, `signals` and `waiters` are guarded by mu_.
  std::vector<Origin> origins_;
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_REMOTE_MEMORY_H_
