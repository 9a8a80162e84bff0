// Runs the schedule of one rank over its connections.

#ifndef PENSTOCK_COLLECTIVES_NET_EXECUTION_H_
#define PENSTOCK_COLLECTIVES_NET_EXECUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/loans.h"
#include "collectives/net/message.h"
#include "collectives/net/patience.h"
#include "collectives/net/placement.h"
#include "collectives/net/targets.h"
#include "collectives/net/window.h"
#include "collectives/operand_memory.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/schedule.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

// The operands of one rank, as in schedule.h.
struct Operands {
  tensor::DType dtype = tensor::DType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  OperandMemory* data_memory = nullptr;
  void* data = nullptr;
  OperandMemory* input_memory = nullptr;
  const void* input = nullptr;
};

// The objects of a group through which an operation runs.
struct Connections {
  Ledger* ledger;
  Links* links;
  Loans* loans;      // empty between operations
  Targets* targets;  // empty between operations
  // The unacknowledged parts to each rank.
  const std::vector<std::shared_ptr<Window>>* windows;
};

// One operation. Sends each transfer in parts. Several parts are in flight
// concurrently, and a part is reduced while later parts arrive. Parts that
// replace elements are received in their place if possible.
//
//  Thread-compatible.
class Execution {
 public:
  // Limits the parts that a peer has not acknowledged, in bytes.
  static constexpr int64_t kWindow = 4 * 1024 * 1024;

  Execution(const Connections& connections, uint64_t number,
            const CallWords& words, const Operands& operands,
            absl::Duration timeout);

  // Returns the error that ended the group. After an error, parts in flight may
  // still refer to the operands, and offers may remain; after success, neither
  // is the case.
  absl::Status Run(const Schedule& schedule);

 private:
  // An action, and the part of it that remains.
  struct Transfer {
    const Action* action;
    int64_t done = 0;  // elements
    bool over = false;
    // The number of elements, from the first one, that are sent without a copy.
    int64_t lent = 0;
    // Of a receive: true if its parts are received in place, and the number of
    // elements for which OfferNext() has run.
    bool is_in_place = false;
    int64_t offered = 0;
  };

  absl::Status RunSteps(const Schedule& schedule);
  absl::Status RunStep(const Step& step);
  // Returns the number of elements that a send of the step lends.
  int64_t LentBy(const Step& step, const Action& send) const;
  // Returns true if a receive of the step is received in place.
  bool IsInPlace(const Step& step, const Action& receive) const;
  bool IsOverTcp(int peer) const;
  // Offers the places of the next parts to receive.
  void OfferNext();
  // Waits until peers have received all lent parts.
  absl::Status AwaitLoans();
  // Waits until nothing refers to the place of a received part any more.
  absl::Status AwaitPlaces();
  // Waits for a short time until `borrower` has received lent parts.
  absl::Status AwaitReturn(int borrower, uint32_t seen);
  // Returns the rank that still borrows memory which the next received part
  // will overwrite, or nullopt.
  absl::optional<int> BorrowerOfNext();
  // Return true if any part was sent or received.
  absl::StatusOr<bool> SendNext();
  absl::StatusOr<bool> ReceiveNext();
  absl::Status SendPart(Transfer* transfer);
  // Sends all parts that overlap [begin, end), because these elements are about
  // to be overwritten.
  absl::Status SendBefore(int64_t begin, int64_t end);
  // Sends the next part to the peer of send `last`. The part belongs to that
  // send, or to an earlier send to the same peer.
  absl::Status SendInOrder(size_t last);
  absl::Status CopyToSelf(Transfer* receive);
  absl::Status Apply(const Action& action, int64_t begin, int64_t count,
                     const memory::Payload& payload);
  // Copies received elements into the buffer, or reduces them there.
  absl::Status Combine(Action::Kind kind, const void* from, void* into,
                       int64_t count);
  // Returns the memory that a send reads. Sets `address` to the address of the
  // send's first element.
  OperandMemory* SourceOf(const Action& send, const void** address) const;
  // Ends the group because of an error of this rank alone.
  absl::Status Fail(const absl::Status& status);
  absl::Status Wait(uint32_t seen);

  int64_t NextCount(const Transfer& transfer) const;
  void* DataAt(int64_t element);

  Ledger* const ledger_;
  Links* const links_;
  Loans* const loans_;
  Targets* const targets_;
  const std::vector<std::shared_ptr<Window>>& windows_;
  const uint64_t number_;
  const CallWords words_;
  const Operands operands_;
  const int64_t part_elements_;
  Patience patience_;
  std::vector<uint32_t> sent_parts_;      // by rank
  std::vector<uint32_t> received_parts_;  // by rank
  std::vector<uint32_t> offered_parts_;   // by rank, including skipped ones
  // The transfers of the current step.
  std::vector<Transfer> sends_;
  std::vector<Transfer> receives_;
  size_t next_send_ = 0;
  size_t next_receive_ = 0;
  size_t next_offer_ = 0;  // an index of receives_
  std::vector<uint8_t> scratch_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_EXECUTION_H_
