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

// Stores tensors by name. Shares their memory, which may be part of a received
// message. Copies a tensor that is less than half of its message. Always copies
// a tensor on a device: to the same device, or to the heap if the device has no
// memory left. Thus a stored tensor holds no memory of a peer's device, and no
// kernel writes to it. Each call is atomic. Thread-safe.
//
// The budget limits the bytes of all names and entries (kEntryBytes), and of
// the memory, at any location, that the tensors prevent from being freed. The
// budget counts
// - stored tensors;
// - tensors that incomplete streams have collected, see StoreReservation;
// - replaced or deleted tensors that an answer to a peer still holds.
class TensorStore {
 public:
  // The bytes that an entry counts against the budget in addition to its name
  // and its tensor's memory. An upper bound of the real overhead.
  static constexpr size_t kEntryBytes = 512;

  // The overhead of a tensor in an answer, in bytes: an upper bound for
  // handles, header, slices and gRPC's own memory, without name and elements.
  static constexpr size_t kAnswerEntryBytes = 1024;

  // The minimum speed of a stream above its client's share, in bytes per
  // second. All networks that carry tensors are faster.
  static constexpr double kStreamBytesPerSecond = 1 << 20;

  struct Options {
    size_t budget_bytes = size_t{4} << 30;
    // Limits the memory of answers to peers, without the stored tensors: for
    // each tensor its name, kAnswerEntryBytes, and its elements if they are
    // copied. 0 selects a quarter of the budget, and at least 16 MiB.
    size_t answer_bytes = 0;
    // The fraction that one client may have of the part that other clients
    // leave; see ClientShares. Applies to the budget for incomplete streams and
    // to answer_bytes. Above 0 and at most 1; with 1, one client may have
    // everything.
    double client_share = 0.5;
    // A client's streams may exceed its share of the budget as long as they do
    // not stall. A stream stalls if it has been behind kStreamBytesPerSecond
    // for this time. A call that finds no room ends stalled streams.
    absl::Duration stall_limit = absl::Seconds(5);
  };

  explicit TensorStore(const Options& options);
  // Makes a store with this budget and defaults for all other options.
  explicit TensorStore(size_t budget_bytes);

  // Stores every tensor under its name, and replaces earlier tensors. If a name
  // occurs twice, the last tensor counts. Appends the replaced tensors to
  // `replaced`, unless that is null; they count against the budget until they
  // are dropped. Returns how many bytes the stored tensors then hold.
  //
  // On an error, nothing has changed. Returns
  //
  // - INVALID_ARGUMENT for an empty name;
  // - RESOURCE_EXHAUSTED, with the numbers, above the budget, or if there is no
  //   memory for a copy;
  // - the errors of DeviceMemory.
  absl::StatusOr<size_t> Put(const Bundle& bundle, Bundle* replaced = nullptr);

  // Like Put(), but also shares memory on devices. The caller guarantees that
  // such memory belongs to this process and that nobody writes to it, see
  // OwnOnDevices(). Uses the room of `reserved`, unless that is null.
  absl::StatusOr<size_t> PutOwn(const Bundle& bundle, Bundle* replaced,
                                StoreReservation* reserved);

  // Returns the named tensors, in the order of `names`. Returns NOT_FOUND, with
  // the first missing name. The results do not count against the budget once
  // they are replaced or deleted in the store.
  absl::StatusOr<Bundle> Get(absl::Span<const std::string> names) const;

  // Like Get(), for an answer to a peer: the results count against the budget
  // even after they are replaced or deleted.
  absl::StatusOr<Bundle> Lend(absl::Span<const std::string> names) const;

  // Reserves room for an answer to `client` with this number of tensors, and
  // with `more_bytes` of names and elements. Returns RESOURCE_EXHAUSTED, with
  // the numbers, above answer_bytes or the client's share.
  class AnswerRoom;
  absl::StatusOr<AnswerRoom> ReserveAnswer(const std::string& client,
                                           size_t tensors, size_t more_bytes);

  // Deletes the named tensors, and returns how many of the names existed.
  size_t Delete(absl::Span<const std::string> names);

  // Returns all tensors, in the order of their names.
  Bundle All() const;

  struct Usage {
    size_t tensors;       // stored tensors
    size_t name_bytes;    // of the stored tensors
    size_t bytes;         // bytes that count against the budget
    size_t answer_bytes;  // memory of answers, without stored tensors
  };
  Usage usage() const;

 private:
  friend class StoreReservation;
  struct Entry {
    Tensor tensor;
    // The entry's bytes of the budget, shared with the lent copies of the
    // tensor.
    std::shared_ptr<Budget::Hold> hold;
  };
  using Entries = std::map<std::string, Entry>;
  // A stream above its client's share.
  struct Above {
    absl::Time stalls_at;         // unless more bytes arrive
    std::function<void()> evict;  // may do nothing
  };

  static Tensor Lent(const Entry& entry);
  // Reserves bytes like Budget::Take(). If there is no room, ends stalled
  // streams above their clients' shares, and tries again. Call it without
  // holding mu_.
  absl::StatusOr<Budget::Hold> TakeFor(size_t bytes);
  // Ends the stalled streams. Returns false if there is none.
  bool EvictStalled();
  // Stores `fresh`, which takes `bytes`, and swaps the replaced entries into
  // it.
  absl::StatusOr<size_t> StoreFresh(size_t bytes, Entries* fresh,
                                    Bundle* replaced,
                                    StoreReservation* reserved);
  // Returns the number of bytes that are freed when the entries of these names
  // are replaced and nobody holds the old tensors.
  size_t FreedByLocked(const Entries& fresh, bool keeps_replaced) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration stall_limit_;
  Budget budget_;
  ClientShares gathering_;  // parts of the budget, by client of a stream
  Budget answers_;
  ClientShares answers_of_clients_;
  // The reservations above their clients' shares.
  absl::Mutex above_mu_;
  std::map<StoreReservation*, Above> above_ ABSL_GUARDED_BY(above_mu_);
  mutable absl::Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;       // of entries_
  size_t name_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of entries_
};

// Room for an answer, released on destruction.
class TensorStore::AnswerRoom {
 private:
  friend class TensorStore;
  Budget::Hold bytes_;
  ClientShares::Hold of_client_;
};

// Room in a store for tensors that are still being collected for `client`; an
// empty name is the program itself. The destructor releases unused room. The
// store must outlive this object. Not thread-safe.
//
// With a function `evict`, a reservation may exceed its client's share. If the
// reservation stalls and other clients need the room, the store calls `evict`,
// on any thread and possibly several times. `evict` should drop the reservation
// soon and must not block. The store may call `evict` even after the
// reservation is destroyed.
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
  // the client's share.
  absl::Status Add(const std::string& name, size_t held_bytes);

  // Records that `bytes` of the reserved tensors have arrived.
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
  bool is_above_ = false;  // above its client's share
  std::vector<Part> parts_;
  size_t bytes_ = 0;  // of all parts
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STORE_H_
