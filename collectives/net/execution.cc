#include "collectives/net/execution.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/elements.h"
#include "collectives/fault.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/loans.h"
#include "collectives/net/message.h"
#include "collectives/net/placement.h"
#include "collectives/net/targets.h"
#include "collectives/net/window.h"
#include "collectives/operand_memory.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/schedule.h"
#include "tensor_service/dtype.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

namespace {

// Limits the parts of a peer that are offered before they are received: twice
// as many of the largest parts as the peer may have in flight.
constexpr uint32_t kMaxOffered = 2 * Execution::kWindow / kMaxPartBytes;
// The longest sleep while the end of a lost connection is awaited.
constexpr absl::Duration kNap = absl::Milliseconds(20);

}  // namespace

using Kind = Action::Kind;

Execution::Execution(const Connections& connections, uint64_t number,
                     const CallWords& words, const Operands& operands,
                     absl::Duration timeout)
    : ledger_(connections.ledger),
      links_(connections.links),
      loans_(connections.loans),
      targets_(connections.targets),
      windows_(*connections.windows),
      number_(number),
      words_(words),
      operands_(operands),
      part_elements_(kMaxPartBytes /
                     static_cast<int64_t>(tensor::ElementSize(operands.dtype))),
      patience_(
          ledger_,
          [links = links_](int peer, const Message& notice) {
            links->Send(peer, notice);
          },
          number, words, timeout),
      sent_parts_(ledger_->ranks()),
      received_parts_(ledger_->ranks()),
      offered_parts_(ledger_->ranks()) {}

absl::Status Execution::Run(const Schedule& schedule) {
  absl::Status status = RunSteps(schedule);
  if (status.ok()) status = AwaitLoans();
  return status.ok() ? AwaitPlaces() : status;
}

absl::Status Execution::RunSteps(const Schedule& schedule) {
  size_t begin = 0;
  while (begin < schedule.size()) {
    size_t end = begin;
    while (end < schedule.size() &&
           schedule[end].step == schedule[begin].step) {
      ++end;
    }
    absl::Status status = RunStep(
        {absl::MakeConstSpan(schedule).subspan(begin, end - begin),
         ledger_->rank(), operands_.dtype, /*is_last=*/end == schedule.size()});
    if (!status.ok()) return status;
    begin = end;
  }
  return absl::OkStatus();
}

int64_t Execution::LentBy(const Step& step, const Action& send) const {
  const void* source;
  if (SourceOf(send, &source) != HostMemory()) return 0;
  const int64_t lent = LentElements(step, send);
  return lent > 0 && IsOverTcp(send.peer) ? lent : 0;
}

bool Execution::IsInPlace(const Step& step, const Action& receive) const {
  return operands_.data_memory == HostMemory() &&
         IsReceivedInPlace(step, receive) && IsOverTcp(receive.peer);
}

bool Execution::IsOverTcp(int peer) const {
  return links_->PathTo(peer) == "tcp";
}

void Execution::OfferNext() {
  while (next_offer_ < receives_.size()) {
    Transfer& receive = receives_[next_offer_];
    const Range& range = receive.action->range;
    const int peer = receive.action->peer;
    if (offered_parts_[peer] >= received_parts_[peer] + kMaxOffered) return;
    const int64_t count =
        std::min(part_elements_, range.count - receive.offered);
    void* const place = DataAt(range.begin + receive.offered);
    const size_t bytes = BytesOf(operands_.dtype, count);
    if (receive.is_in_place) {
      // An earlier step may still send the old elements.
      if (loans_->BorrowerOf(place, bytes).has_value()) return;
      targets_->Offer(peer, {0, number_, offered_parts_[peer]}, place, bytes);
    }
    if (peer != ledger_->rank()) ++offered_parts_[peer];
    receive.offered += count;
    if (receive.offered == range.count) ++next_offer_;
  }
}

absl::Status Execution::AwaitLoans() {
  patience_.Restart();
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    const absl::optional<int> borrower = loans_->Borrower();
    if (!borrower.has_value()) return absl::OkStatus();
    absl::Status status = AwaitReturn(*borrower, seen);
    if (!status.ok()) return status;
  }
}

// All parts have been received, and their claims end at once. A claim that
// lasts belongs to a part that a peer sends once more.
absl::Status Execution::AwaitPlaces() {
  patience_.Restart();
  targets_->Withdraw();
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    ledger_->Drop(number_);
    const absl::optional<int> writer = targets_->Writer();
    if (!writer.has_value()) return absl::OkStatus();
    absl::Status status = patience_.AwaitEndOfPart(*writer, seen);
    if (!status.ok()) return status;
  }
}

absl::Status Execution::AwaitReturn(int borrower, uint32_t seen) {
  if (!ledger_->IsGone(borrower)) return patience_.AwaitAnswers(borrower, seen);
  // The end of a connection ends its loans.
  ledger_->signal().Await(seen, kNap);
  return absl::OkStatus();
}

// Peers soon receive the parts that were lent in earlier steps, because the
// elements to receive depend on those parts.
absl::optional<int> Execution::BorrowerOfNext() {
  if (next_receive_ == receives_.size()) return absl::nullopt;
  const Transfer& next = receives_[next_receive_];
  return loans_->BorrowerOf(DataAt(next.action->range.begin + next.done),
                            BytesOf(operands_.dtype, NextCount(next)));
}

absl::Status Execution::RunStep(const Step& step) {
  sends_.clear();
  receives_.clear();
  next_send_ = next_receive_ = next_offer_ = 0;
  for (const Action& action : step.actions) {
    (action.kind == Kind::kSend ? sends_ : receives_).push_back({&action});
  }
  for (Transfer& send : sends_) send.lent = LentBy(step, *send.action);
  for (Transfer& receive : receives_) {
    receive.is_in_place = IsInPlace(step, *receive.action);
  }
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    const absl::StatusOr<bool> sent = SendNext();
    if (!sent.ok()) return sent.status();
    const absl::StatusOr<bool> received = ReceiveNext();
    if (!received.ok()) return received.status();
    if (next_send_ == sends_.size() && next_receive_ == receives_.size()) {
      return absl::OkStatus();
    }
    if (*sent || *received) {
      patience_.Restart();
      continue;
    }
    absl::Status waited = Wait(seen);
    if (!waited.ok()) return waited;
  }
}

absl::Status Execution::Wait(uint32_t seen) {
  const absl::optional<int> borrower = BorrowerOfNext();
  if (borrower.has_value()) return AwaitReturn(*borrower, seen);
  const Transfer& transfer = next_receive_ < receives_.size()
                                 ? receives_[next_receive_]
                                 : sends_[next_send_];
  return patience_.Await(transfer.action->peer, seen);
}

int64_t Execution::NextCount(const Transfer& transfer) const {
  return std::min(part_elements_, transfer.action->range.count - transfer.done);
}

void* Execution::DataAt(int64_t element) {
  return At(operands_.data, element, operands_.dtype);
}

absl::StatusOr<bool> Execution::SendNext() {
  while (next_send_ < sends_.size() && sends_[next_send_].over) ++next_send_;
  if (next_send_ == sends_.size()) return false;
  Transfer& transfer = sends_[next_send_];
  const int peer = transfer.action->peer;
  // Skips the message to this rank itself, because the receive makes the copy.
  if (peer == ledger_->rank()) {
    ++next_send_;
    return true;
  }
  if (!windows_[peer]->IsBelow(kWindow)) return false;
  const absl::Status sent = SendPart(&transfer);
  if (!sent.ok()) return sent;
  return true;
}

absl::Status Execution::SendPart(Transfer* transfer) {
  const Action& action = *transfer->action;
  const int64_t count = NextCount(*transfer);
  const void* from;
  OperandMemory* const memory = SourceOf(action, &from);
  const void* const data = At(from, transfer->done, operands_.dtype);
  const size_t bytes = BytesOf(operands_.dtype, count);
  const Key key = {0, number_, sent_parts_[action.peer]++};
  const auto& window = windows_[action.peer];
  absl::Status sent;
  if (transfer->done + count <= transfer->lent) {
    links_->SendOwnedPart(action.peer, key, words_,
                          loans_->Lend(action.peer, data, bytes), window);
  } else if (memory == HostMemory() || bytes == 0) {
    sent = links_->SendPart(action.peer, key, words_, data, bytes, window);
  } else {
    absl::StatusOr<memory::Block> staged = memory::AllocateBlock(bytes);
    sent = staged.ok() ? memory->CopyToHost(data, staged->data.get(), bytes)
                       : staged.status();
    if (sent.ok()) {
      links_->SendOwnedPart(action.peer, key, words_, staged->AsBytes(),
                            window);
    }
  }
  if (!sent.ok()) return Fail(sent);
  transfer->done += count;
  transfer->over = transfer->done == action.range.count;
  return absl::OkStatus();
}

// Sends the parts between `begin` and `end`. First sends earlier parts for the
// same peer, so that the parts for one peer keep their order.
absl::Status Execution::SendBefore(int64_t begin, int64_t end) {
  for (size_t i = next_send_; i < sends_.size(); ++i) {
    const Action& action = *sends_[i].action;
    const int64_t last = action.range.begin + action.range.count;
    if (action.buffer != Action::Buffer::kData || last <= begin) continue;
    while (!sends_[i].over && action.range.begin + sends_[i].done < end) {
      absl::Status sent = SendInOrder(i);
      if (!sent.ok()) return sent;
    }
  }
  return absl::OkStatus();
}

absl::Status Execution::SendInOrder(size_t last) {
  size_t first = next_send_;
  while (first < last &&
         (sends_[first].over ||
          sends_[first].action->peer != sends_[last].action->peer)) {
    ++first;
  }
  return SendPart(&sends_[first]);
}

absl::StatusOr<bool> Execution::ReceiveNext() {
  if (next_receive_ == receives_.size()) return false;
  Transfer& transfer = receives_[next_receive_];
  const Action& action = *transfer.action;
  const int64_t begin = action.range.begin + transfer.done;
  const int64_t count = NextCount(transfer);
  if (BorrowerOfNext().has_value()) return false;
  OfferNext();  // offers at least this part, unless it was offered before
  if (action.peer == ledger_->rank()) {
    const absl::Status copied = CopyToSelf(&transfer);
    if (!copied.ok()) return copied;
    ++next_receive_;
    return true;
  }
  const Key key = {0, number_, received_parts_[action.peer]};
  const absl::optional<Part> part = ledger_->Take(action.peer, key);
  if (!part.has_value()) return false;
  ++received_parts_[action.peer];
  // A part that came before its offer has not claimed it.
  if (transfer.is_in_place) targets_->Withdraw(action.peer, key);
  absl::Status status = SendBefore(begin, begin + count);
  if (status.ok()) status = Apply(action, begin, count, part->payload);
  if (!status.ok()) return status;
  transfer.done += count;
  if (transfer.done == action.range.count) ++next_receive_;
  return true;
}

absl::Status Execution::CopyToSelf(Transfer* receive) {
  const Action& into = *receive->action;
  for (const Transfer& send : sends_) {
    const Action& from = *send.action;
    if (from.peer != ledger_->rank()) continue;
    const void* source;
    OperandMemory* const memory = SourceOf(from, &source);
    void* const target = DataAt(into.range.begin);
    const size_t bytes = BytesOf(operands_.dtype, into.range.count);
    if (source == target || bytes == 0) return absl::OkStatus();
    const absl::Status copied = memory->Copy(source, target, bytes);
    return copied.ok() ? copied : Fail(copied);
  }
  return absl::InternalError("a schedule without a send to the own rank");
}

absl::Status Execution::Apply(const Action& action, int64_t begin,
                              int64_t count, const memory::Payload& payload) {
  const size_t bytes = BytesOf(operands_.dtype, count);
  if (payload.size() != bytes) {
    return ledger_->End(Fault::kFailed, action.peer,
                        absl::StrCat("rank ", action.peer, " sent ",
                                     payload.size(), " bytes of a part, rank ",
                                     ledger_->rank(), " expected ", bytes));
  }
  const size_t size = tensor::ElementSize(operands_.dtype);
  bool is_cut = false;  // true if an element is divided between two pieces
  for (const memory::Bytes& piece : payload.pieces()) {
    is_cut |= piece.size % size != 0;
  }
  if (is_cut) {
    scratch_.resize(bytes);
    payload.CopyTo(scratch_.data());
    return Combine(action.kind, scratch_.data(), DataAt(begin), count);
  }
  absl::Status status;
  for (const memory::Bytes& piece : payload.pieces()) {
    const auto elements = static_cast<int64_t>(piece.size / size);
    status = Combine(action.kind, piece.data, DataAt(begin), elements);
    if (!status.ok()) break;
    begin += elements;
  }
  return status;
}

absl::Status Execution::Combine(Kind kind, const void* from, void* into,
                                int64_t count) {
  if (count == 0) return absl::OkStatus();
  if (kind == Kind::kReceive && from == into) return absl::OkStatus();
  const absl::Status status =
      kind == Kind::kReceive
          ? operands_.data_memory->CopyFromHost(from, into,
                                                BytesOf(operands_.dtype, count))
          : operands_.data_memory->Reduce(operands_.op, operands_.dtype, from,
                                          kind == Kind::kReduceRight, into,
                                          static_cast<size_t>(count));
  return status.ok() ? status : Fail(status);
}

OperandMemory* Execution::SourceOf(const Action& send,
                                   const void** address) const {
  const bool is_input = send.buffer == Action::Buffer::kInput;
  *address = At(is_input ? operands_.input : operands_.data, send.range.begin,
                operands_.dtype);
  return is_input ? operands_.input_memory : operands_.data_memory;
}

absl::Status Execution::Fail(const absl::Status& status) {
  return ledger_->End(
      Fault::kFailed, ledger_->rank(),
      absl::StrCat("rank ", ledger_->rank(), ": ", status.message()));
}

}  // namespace penstock::collectives
