// A group of ranks, and its collective operations.

#ifndef PENSTOCK_COLLECTIVES_GROUP_H_
#define PENSTOCK_COLLECTIVES_GROUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "collectives/call.h"
#include "collectives/letter.h"
#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

// Ranks that call the same operations in the same order with the same
// arguments, except for pointers. All operations block. `count` counts
// elements. `in` and `out` may be unaligned, and must be equal or must not
// overlap.
//
// The results of reductions are bit-equal on all ranks and from run to run.
//
// The first error ends the group: all later calls return the same error. A rank
// that dies, stops or leaves ends the waits of all ranks within two seconds,
// with UNAVAILABLE and its number. Ranks that call different operations get
// INVALID_ARGUMENT, with both calls. Afterwards the remaining ranks can form a
// new group. After an error, the contents of `out` are undefined.
//
// An invalid argument, such as a negative count, is refused with
// INVALID_ARGUMENT before this rank meets the others. The group continues. The
// other ranks wait until this rank calls an operation or leaves, or until their
// timeout.
//
// Thread-safe: collective calls of one group run one after another. Send() and
// Receive() run concurrently with all other calls.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Leaves the group.
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Returns a text for people: the paths by which this rank reaches the others.
  virtual std::string Describe() const = 0;

  // Reduces `count` elements of all ranks.
  absl::Status AllReduce(ReduceOp op, tensor::DType dtype, const void* in,
                         void* out, int64_t count);
  // Like AllReduce(), but only the root gets a result in `out`.
  absl::Status Reduce(ReduceOp op, tensor::DType dtype, const void* in,
                      void* out, int64_t count, int root);
  // Reduces ranks * `count` elements. Each rank gets its block of `count`
  // elements of the result. `in` and `out` must not overlap.
  absl::Status ReduceScatter(ReduceOp op, tensor::DType dtype, const void* in,
                             void* out, int64_t count);
  // Concatenates the `count` elements of each rank. `in` may be this rank's
  // block of `out`.
  absl::Status AllGather(tensor::DType dtype, const void* in, void* out,
                         int64_t count);
  // Like AllGather(), but only the root gets a result in `out`.
  absl::Status Gather(tensor::DType dtype, const void* in, void* out,
                      int64_t count, int root);
  // Gives each rank its block of `count` elements of the root's `in`. The
  // root's `out` may be the root's block of `in`.
  absl::Status Scatter(tensor::DType dtype, const void* in, void* out,
                       int64_t count, int root);
  absl::Status Broadcast(tensor::DType dtype, void* data, int64_t count,
                         int root);
  // Copies block r of rank p's `in` to block p of rank r's `out`, for all pairs
  // of ranks. A block has `count` elements. `in` and `out` must not overlap.
  absl::Status AllToAll(tensor::DType dtype, const void* in, void* out,
                        int64_t count);
  absl::Status Barrier();

  // Sends elements to rank `to`. Returns once `data` may change. A small
  // message is buffered, so its receiver may call later. A large message waits
  // for its receiver, as does a small message after megabytes of unreceived
  // messages. Returns INVALID_ARGUMENT if `to` is this rank.
  absl::Status Send(tensor::DType dtype, const void* data, int64_t count,
                    int to, uint32_t tag);
  // Receives the next message with this tag from rank `from`. Messages of one
  // rank with different tags may be received in any order. A message of another
  // type or count than the caller's ends the group.
  absl::Status Receive(tensor::DType dtype, void* data, int64_t count, int from,
                       uint32_t tag);

  // Ends the current operation and all later ones, on all ranks, with
  // CANCELLED. Any thread may call this. Does not wait.
  virtual void Abort() = 0;

 private:
  // Runs a call whose arguments are valid. `call.count` is the `count` of the
  // functions above. `in` is null on ranks without input, and `out` on ranks
  // without output. For a broadcast, `in` equals `out`.
  virtual absl::Status Run(const Call& call, const void* in, void* out) = 0;
  // Run valid messages, like Send() and Receive().
  virtual absl::Status SendLetter(const Letter& letter, const void* data) = 0;
  virtual absl::Status ReceiveLetter(const Letter& letter, void* data) = 0;

  absl::Status CheckCall(const Call& call, int blocks) const;
  absl::Status CheckLetter(const Letter& letter) const;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_GROUP_H_
