// A group of ranks on one host, and its collective operations.

#ifndef PENSTOCK_COLLECTIVES_HOST_GROUP_H_
#define PENSTOCK_COLLECTIVES_HOST_GROUP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/call.h"
#include "collectives/group.h"
#include "collectives/host/copy_choice.h"
#include "collectives/host/exchange.h"
#include "collectives/host/mail.h"
#include "collectives/host/meeting.h"
#include "collectives/host/pool.h"
#include "collectives/host/watch.h"
#include "collectives/letter.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/blocks.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {

struct HostGroupOptions {
  int ranks = 1;
  // The size of each of the two slots in a rank's shared memory, in bytes.
  // Larger operations are divided into pieces. Must be equal on all ranks.
  uint64_t slot_bytes = 512 * 1024;
  // The size of each rank's memory for Allocate(). The system provides this
  // memory immediately. Must be equal on all ranks.
  uint64_t pool_bytes = 0;
  // Limits the time in which the group is formed.
  absl::Duration meeting_timeout = absl::Minutes(1);
  // Limits each wait of an operation for other ranks.
  absl::Duration timeout = absl::Minutes(30);
  // Limits the time for which a rank whose process is stopped may be silent.
  absl::Duration silence = Watch::kSilence;
  // Limits the bytes of messages that this rank stores for each sender. A
  // message is stored until a call requests its tag, and counts 512 bytes more
  // than its elements. Above the limit, the group ends.
  uint64_t kept_bytes = uint64_t{1} << 30;
  progress::PollingMode polling = progress::PollingMode::kAdaptive;
};

// Processes of one user on one host. Each rank reads the memory of the others,
// and writes only its own. Reductions are in the order of the ranks.
class HostGroup final : public Group {
 public:
  // Forms the group as rank 0, which opened the meeting.
  static absl::StatusOr<std::unique_ptr<HostGroup>> Lead(
      Meeting meeting, const HostGroupOptions& options);
  // Forms the group as rank `rank`, from 1 on.
  static absl::StatusOr<std::unique_ptr<HostGroup>> Join(
      absl::string_view invitation, int rank, const HostGroupOptions& options);

  // Allocates memory in pool().
  absl::StatusOr<std::unique_ptr<PoolMemory>> Allocate(uint64_t bytes) {
    return pool_->Allocate(bytes);
  }
  // Returns the part of this rank's memory that peers can read. If all inputs
  // that peers need are in such pools, a large operation copies none of them
  // into slots. An AllReduce() must also be in place. A peer may read such an
  // input after an operation has returned an error. The peer then gets an
  // error, too.
  const std::shared_ptr<Pool>& pool() const { return pool_; }

  int rank() const override { return exchange_.rank(); }
  int ranks() const override { return exchange_.ranks(); }
  std::string Describe() const override;

  void Abort() override { exchange_.Abort(); }

  // Waits until all ranks have called Agree() with the same call. Used by
  // groups that contain this group.
  absl::Status Agree(const Call& call);
  // Runs a valid call as a part of another operation.
  absl::Status RunPhase(const Call& phase, const void* in, void* out) {
    return Run(phase, in, out);
  }

 private:
  // The elements [begin, begin + count) of an operation.
  struct Piece {
    int64_t begin;
    int64_t count;
  };
  using Fill = std::function<void(const Piece& piece, uint8_t* slot)>;
  using Take = std::function<void(const Piece& piece)>;
  // The inputs of all ranks. Null for a rank whose input no other rank reads.
  using Operands = std::array<const void*, kMaxHostRanks>;

  // The number of bytes, of all ranks together, below which each rank reduces
  // the whole buffer. This needs one wait instead of two.
  static constexpr int64_t kFlatBytes = 64 * 1024;

  HostGroup(Members members, const HostGroupOptions& options)
      : exchange_(std::move(members), options.polling, options.timeout,
                  options.silence),
        mail_(exchange_.members(), exchange_.watch(), options.kept_bytes,
              options.polling),
        pool_(std::make_shared<Pool>(exchange_.pool(), options.pool_bytes,
                                     exchange_.pool_memory())) {}

  absl::Status Run(const Call& call, const void* in, void* out) override;
  absl::Status SendLetter(const Letter& letter, const void* data) override;
  absl::Status ReceiveLetter(const Letter& letter, void* data) override;
  // Meets the peers once for each piece of at most `most` elements, and at
  // least once. For each piece, fills this rank's slot, waits for the peers,
  // and takes data from the slots of all ranks.
  absl::Status InPieces(const Call& call, int64_t most, const Fill& fill,
                        const Take& take) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t SlotElements(tensor::DType dtype, int blocks) const;
  absl::Status AllReduceFlat(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AllReduceByBlocks(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if RunInPool() is worth its meeting. Equal on all ranks.
  bool TriesPool(const Call& call) const;
  // Publishes the place of this rank's operand, and runs the operation on the
  // published operands. Returns nullopt if one that peers read is not in its
  // pool. All ranks get the same result. The last meeting ends all reads.
  absl::optional<absl::Status> RunInPool(const Call& call, const void* in,
                                         void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReadOperands(const Call& call, const Operands& operands,
                            void* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AllReduceInPool(const Call& call, const Operands& operands,
                               void* data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReduceFromPool(const Call& call, const Operands& operands,
                              void* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reduces a range of elements of all operands.
  void ReduceOperands(const Call& call, const Operands& operands,
                      const Range& range, void* into) const;
  // Concatenates `call.count` elements of each operand, from element `begin`.
  void CopyOperands(const Call& call, const Operands& operands, int64_t begin,
                    void* out) const;

  absl::Status RunBySlots(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The operations by slots. `out` is null on ranks that get no result.
  absl::Status ReduceAll(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReduceBlocks(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status GatherAll(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ScatterAll(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status BroadcastAll(const Call& call, void* data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // On the root, `streams` chooses the kind of copies.
  absl::Status BroadcastBySlots(const Call& call, void* data, bool streams)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Transpose(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reduces this rank's elements at `own` with those at byte `offset` of the
  // slots of all other ranks.
  void ReduceSlots(const Call& call, const void* own, size_t offset,
                   int64_t count, void* into)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  Exchange exchange_;  // guarded by mu_, except for Abort() and constants
  // Learns the better kind of copy from the broadcasts whose root is this rank.
  CopyChoice broadcast_copies_ ABSL_GUARDED_BY(mu_);
  Mail mail_;
  const std::shared_ptr<Pool> pool_;
  // Operations that read operands in place, and operations that had to copy
  // because an operand was outside of its pool.
  std::atomic<uint64_t> read_in_place_{0};
  std::atomic<uint64_t> copied_{0};
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_GROUP_H_
