// Named tensors in memory, under a budget.

#ifndef PENSTOCK_TENSOR_SERVICE_STORE_H_
#define PENSTOCK_TENSOR_SERVICE_STORE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tensor_service/budget.h"
#include "tensor_service/client_shares.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

class StoreReservation;

// Keeps tensors by name. Shares their memory, which may be that of the message
// they came in; a tensor that is less than half of its message is copied
// instead. One on a device is always copied: on the device, or to the heap if
// that has no memory left. So no peer's device is held, and no kernel writes to
// what is stored. Each call is atomic. Thread-safe.
//
// The budget bounds what is held: for each tensor its name, kEntryBytes, and
// the memory that it keeps from being freed, wherever that is. It counts
//   - what is stored;
//   - what streams have gathered so far, see StoreReservation;
//   - what was replaced or deleted, as long as an answer to a peer holds it.
class TensorStore {
 public:
  // The most that an entry takes beside its name and its tensor's memory, in
  // bytes.
  static constexpr size_t kEntryBytes = 512;

  // The most that a tensor of an answer takes beside its name and its elements,
  // in bytes: handles, its header, slices, and what gRPC has for these.
  static constexpr size_t kAnswerEntryBytes = 1024;

  // The slowest that a stream above its client's share may be, in bytes: slower
  // than any network that carries tensors.
  static constexpr double kStreamBytesPerSecond = 1 << 20;

  struct Options {
    size_t budget_bytes = size_t{4} << 30;
    // Bounds what the answers to peers take beside the tensors that are stored:
    // for each tensor its name, kAnswerEntryBytes, and its elements if they are
    // copied. 0 is a quarter of the budget, and at least 16 MiB.
    size_t answer_bytes = 0;
    // The most that one client may have of what the others leave: of the budget
    // for streams that are not complete, and of answer_bytes. See ClientShares.
    // Above 0, and at most 1: a client may have all.
    double client_share = 0.5;
    // A client's streams may have more of the budget than its share, as long as
    // they do not stall: who finds no room ends those that have been behind
    // kStreamBytesPerSecond for so long.
    absl::Duration stall_limit = absl::Seconds(5);
  };

  explicit TensorStore(const Options& options);
  // With that budget, and else the defaults.
  explicit TensorStore(size_t budget_bytes);

  // Stores every tensor under its name, in place of what was there. If a name
  // comes twice, the last one counts. Appends the tensors that were replaced to
  // `replaced`, unless that is null; they count against the budget until they
  // are dropped. Returns how many bytes the stored tensors hold then.
  //
  // Returns INVALID_ARGUMENT for an empty name, and RESOURCE_EXHAUSTED, with
  // the numbers, above the budget, or if there is no memory for a copy; and the
  // errors of DeviceMemory. On an error nothing has changed.
  absl::StatusOr<size_t> Put(const Bundle& bundle, Bundle* replaced = nullptr);

  // As Put(), but shares memory on devices, too, which must be this process's
  // own, and that nobody writes to: OwnOnDevices(). Uses up `reserved`, unless
  // that is null, instead of other room.
  absl::StatusOr<size_t> PutOwn(const Bundle& bundle, Bundle* replaced,
                                StoreReservation* reserved);

  // Returns the named tensors, in the order of `names`. Returns NOT_FOUND,
  // which names the first that is missing. What the caller holds of them after
  // they are replaced or deleted is the caller's, and does not count.
  absl::StatusOr<Bundle> Get(absl::Span<const std::string> names) const;

  // As Get(), for an answer to a peer: what is held of these tensors counts
  // against the budget, also after they are replaced or deleted.
  absl::StatusOr<Bundle> Lend(absl::Span<const std::string> names) const;

  // Reserves room for an answer of so many tensors to `client`, with
  // `more_bytes` of names and elements. Returns RESOURCE_EXHAUSTED, with the
  // numbers, above answer_bytes or the client's share.
  class AnswerRoom;
  absl::StatusOr<AnswerRoom> ReserveAnswer(const std::string& client,
                                           size_t tensors, size_t more_bytes);

  // Deletes the named tensors, and returns how many of the names existed.
  size_t Delete(absl::Span<const std::string> names);

  // Returns all tensors, in the order of their names.
  Bundle All() const;

  struct Usage {
    size_t tensors;       // that are stored
    size_t name_bytes;    // of those
    size_t bytes;         // what counts against the budget
    size_t answer_bytes;  // what answers take beside
  };
  Usage usage() const;

 private:
  friend class StoreReservation;
  struct Entry {
    Tensor tensor;
    // Of the budget. Shared with what was lent of the tensor.
    std::shared_ptr<Budget::Hold> hold;
  };
  using Entries = std::map<std::string, Entry>;
  // A stream above its client's share.
  struct Above {
    absl::Time stalls_at;         // unless more comes
    std::function<void()> evict;  // may do nothing
  };

  static Tensor Lent(const Entry& entry);
  // As Budget::Take(). If there is no room, ends streams that stall above their
  // clients' shares, and tries again. Call it without mu_.
  absl::StatusOr<Budget::Hold> TakeFor(size_t bytes);
  // Ends those streams. Returns false if there is none.
  bool EvictStalled();
  // Stores `fresh`, which takes `bytes`, and leaves what it replaces there.
  absl::StatusOr<size_t> StoreFresh(size_t bytes, Entries* fresh,
                                    Bundle* replaced,
                                    StoreReservation* reserved);
  // Returns how many bytes go when the entries of these names are replaced, and
  // nobody keeps them.
  size_t FreedByLocked(const Entries& fresh, bool keeps_replaced) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration stall_limit_;
  Budget budget_;
  ClientShares gathering_;  // of the budget, by streams
  Budget answers_;
  ClientShares answers_of_clients_;
  // Has the reservations above their clients' shares.
  absl::Mutex above_mu_;
  std::map<StoreReservation*, Above> above_ ABSL_GUARDED_BY(above_mu_);
  mutable absl::Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;       // of entries_
  size_t name_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of entries_
};

// Room for an answer, until this goes.
class TensorStore::AnswerRoom {
 private:
  friend class TensorStore;
  Budget::Hold bytes_;
  ClientShares::Hold of_client_;
};

// Room in a store for tensors that are still being gathered, for `client`; an
// empty name is the program itself. Gives back what was not used when it goes.
// The store must outlive it. Not thread-safe.
//
// A reservation may exceed its client's share, if there is `evict`: that is
// called, on any thread and perhaps several times, once the reservation stalls
// and others need the room. It should drop the reservation soon, may be called
// even after it has gone, and must not block.
class StoreReservation {
 public:
  explicit StoreReservation(TensorStore* store, std::string client = "",
                            std::function<void()> evict = nullptr)
      : store_(store), client_(std::move(client)), evict_(std::move(evict)) {}
  ~StoreReservation();
  StoreReservation(const StoreReservation&) = delete;
  StoreReservation& operator=(const StoreReservation&) = delete;

  // Reserves room for one more tensor, which keeps `held_bytes` from being
  // freed. Returns RESOURCE_EXHAUSTED, with the numbers, above the budget or
  // the client's share of it.
  absl::Status Add(const std::string& name, size_t held_bytes);

  // Says that `bytes` of what is gathered have come.
  void Arrived(size_t bytes);

 private:
  friend class TensorStore;
  struct Part {
    Budget::Hold bytes;
    ClientShares::Hold of_client;
  };

  TensorStore* const store_;
  const std::string client_;
  const std::function<void()> evict_;
  bool is_above_ = false;  // its client's share
  std::vector<Part> parts_;
  size_t bytes_ = 0;  // of all parts
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STORE_H_
