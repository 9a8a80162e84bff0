#include "collectives/net/group.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/fault.h"
#include "collectives/net/address.h"
#include "collectives/net/buffers.h"
#include "collectives/net/execution.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/listener.h"
#include "collectives/net/message.h"
#include "collectives/net/window.h"
#include "collectives/operand_memory.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/choice.h"
#include "collectives/schedule/schedule.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"
#include "transport/progress/fork_count.h"

namespace penstock::collectives {
namespace {

// Limits the number of cached schedules. About the number of different sizes of
// a model's gradients.
constexpr size_t kMaxPlans = 256;
// Limits each of the two waits of a rank that leaves: until its peers have
// received the last messages, and until the peers know that this rank leaves.
constexpr absl::Duration kFlush = absl::Seconds(2);
// The time after an error during which peers may still receive memory that is
// lent to them, or finish sending parts.
constexpr absl::Duration kLoanPatience = absl::Milliseconds(200);

absl::Status CheckOptions(const Listener& listener,
                          const std::vector<std::string>& addresses,
                          const NetGroupOptions& options) {
  const auto ranks = static_cast<int>(addresses.size());
  if (ranks < 1 || ranks > kMaxNetRanks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a group of ", ranks, " ranks, expected 1 to ", kMaxNetRanks));
  }
  if (options.rank < 0 || options.rank >= ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, ", expected 0 to ", ranks - 1));
  }
  if (addresses[options.rank] != listener.address()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the address of rank ", options.rank,
                     " is another one: is a rank given twice?"));
  }
  return absl::OkStatus();
}

// Returns a fault whose status has this code.
Fault FaultOf(absl::StatusCode code) {
  for (const Fault fault :
       {Fault::kMismatch, Fault::kLate, Fault::kAborted, Fault::kDied}) {
    if (StatusOf(fault, 0, "").code() == code) return fault;
  }
  return Fault::kFailed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetGroup>> NetGroup::Form(
    std::unique_ptr<Listener> listener,
    const std::vector<std::string>& addresses, const NetGroupOptions& options) {
  absl::Status checked = CheckOptions(*listener, addresses, options);
  if (!checked.ok()) return checked;
  absl::StatusOr<Overrides> overrides = ParseOverrides(options.algorithms);
  if (!overrides.ok()) return overrides.status();
  const auto parsed = ParseAddresses(addresses);
  if (!parsed.ok()) return parsed.status();
  auto ledger =
      std::make_shared<Ledger>(options.rank, static_cast<int>(addresses.size()),
                               listener->options().polling);
  const std::string digest = Digest(addresses);
  auto targets = std::make_shared<Targets>(ledger);
  listener->Admit(ledger, digest, targets);
  auto links = Links::Connect(*parsed, digest, listener->options(), ledger,
                              options.forming_timeout);
  if (!links.ok()) return links.status();
  return std::unique_ptr<NetGroup>(new NetGroup(
      std::move(listener), std::move(ledger), std::move(targets),
      *std::move(links), NumberHosts(*parsed), options, *std::move(overrides)));
}

NetGroup::NetGroup(std::unique_ptr<Listener> listener,
                   std::shared_ptr<Ledger> ledger,
                   std::shared_ptr<Targets> targets,
                   std::unique_ptr<Links> links, std::vector<int> hosts,
                   const NetGroupOptions& options, Overrides overrides)
    : options_(options),
      overrides_(std::move(overrides)),
      fork_count_(progress::ForkCount()),
      hosts_(std::move(hosts)),
      listener_(std::move(listener)),
      ledger_(std::move(ledger)),
      targets_(std::move(targets)),
      links_(std::move(links)),
      letters_(ledger_.get(), links_.get(), options.timeout),
      loans_(std::make_shared<Loans>(ledger_)) {
  base::MutexLock lock(&mu_);
  for (int rank = 0; rank < ranks(); ++rank) {
    windows_.push_back(std::make_shared<Window>());
  }
}

NetGroup::~NetGroup() {
  if (!CheckOwner().ok()) return;
  base::MutexLock lock(&mu_);
  Report();
  // Waits until the peers have received all letters, or for kFlush. Only then
  // tells the peers that this rank leaves.
  links_->Flush(kFlush);
  Message leave;
  leave.kind = Message::Kind::kLeave;
  leave.from = static_cast<uint32_t>(rank());
  leave.key.number = number_;
  links_->SendToAll(leave);
  links_->Flush(kFlush);
}

absl::Status NetGroup::CheckOwner() const {
  if (progress::ForkCount() == fork_count_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the group belongs to the parent of this process");
}

std::string NetGroup::Describe() const {
  if (!CheckOwner().ok()) return "a group of the parent of this process";
  std::string text = absl::StrCat("rank ", rank(), " of ", ranks());
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    absl::StrAppend(&text, ", rank ", peer, " over ", links_->PathTo(peer));
  }
  base::MutexLock lock(&mu_);
  for (const auto& [key, planned] : plans_) {
    absl::StrAppend(&text, "\n", planned.description);
  }
  return text;
}

void NetGroup::Abort() {
  if (!CheckOwner().ok()) return;
  (void)ledger_->End(Fault::kAborted, rank(), "");
  Report();
}

void NetGroup::Report() {
  const absl::optional<Message> report = ledger_->TakeReport();
  if (report.has_value()) links_->SendToAll(*report);
}

absl::Status NetGroup::Fail(const absl::Status& status) {
  return ledger_->End(Fault::kFailed, rank(),
                      absl::StrCat("rank ", rank(), ": ", status.message()));
}

absl::Status NetGroup::Begin(const Call& call) {
  absl::Status own = CheckOwner();
  if (!own.ok()) return own;
  base::MutexLock lock(&mu_);
  absl::Status status = ledger_->Begin(++number_, Encode(call));
  if (!status.ok()) Report();
  return status;
}

absl::Status NetGroup::End(const absl::Status& status) {
  absl::Status ended = ledger_->End(FaultOf(status.code()), rank(),
                                    std::string(status.message()));
  Report();
  return ended;
}

absl::Status NetGroup::AwaitEnd(absl::Duration most) {
  const absl::Time deadline = base::SteadyNow() + most;
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    absl::Status status = ledger_->status();
    const absl::Duration left = deadline - base::SteadyNow();
    if (!status.ok() || left <= absl::ZeroDuration()) return status;
    ledger_->signal().Await(seen, left);
  }
}

absl::Status NetGroup::Run(const Call& call, const void* in, void* out) {
  return RunPhase(call, call, in, out);
}

absl::Status NetGroup::RunPhase(const Call& whole, const Call& phase,
                                const void* in, void* out) {
  absl::Status own = CheckOwner();
  if (!own.ok()) return own;
  base::MutexLock lock(&mu_);
  absl::Status status = RunLocked(Encode(whole), phase, in, out);
  if (!status.ok()) Report();
  return status;
}

absl::Status NetGroup::SendLetter(const Letter& letter, const void* data) {
  absl::Status own = CheckOwner();
  if (own.ok()) own = CheckOnHost(data);
  if (!own.ok()) return own;
  absl::Status status = letters_.Send(letter, data);
  if (!status.ok()) Report();
  return status;
}

absl::Status NetGroup::ReceiveLetter(const Letter& letter, void* data) {
  absl::Status own = CheckOwner();
  if (own.ok()) own = CheckOnHost(data);
  if (!own.ok()) return own;
  absl::Status status = letters_.Receive(letter, data);
  if (!status.ok()) Report();
  return status;
}

absl::Status NetGroup::CheckOnHost(const void* data) const {
  const absl::StatusOr<OperandMemory*> memory =
      MemoryOf(options_.memories, data);
  if (!memory.ok()) return memory.status();
  if (*memory == HostMemory()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "messages with tags are of the host's memory: copy the elements there");
}

absl::Status NetGroup::RunLocked(const CallWords& words, const Call& call,
                                 const void* in, void* out) {
  const absl::StatusOr<OperandMemory*> memory = MemoryOfBoth(in, out);
  if (absl::IsInvalidArgument(memory.status())) return memory.status();
  ++number_;
  absl::Status begun = ledger_->Begin(number_, words);
  if (!begun.ok()) return begun;
  if (!memory.ok()) return Fail(memory.status());
  const absl::StatusOr<const Planned*> planned = PlanOf(call);
  if (!planned.ok()) return Fail(planned.status());
  absl::StatusOr<Buffers> buffers = Buffers::Fill(
      call, rank(), ranks(), (*planned)->extent, *memory, in, out);
  if (!buffers.ok()) return Fail(buffers.status());
  Operands operands = {call.dtype,      call.op, buffers->memory(),
                       buffers->data(), *memory, in};
  absl::Status status = Execute(words, call, **planned, &operands);
  if (!status.ok()) return status;
  status = buffers->Deliver();
  return status.ok() ? status : Fail(status);
}

absl::StatusOr<OperandMemory*> NetGroup::MemoryOfBoth(const void* in,
                                                      const void* out) const {
  const auto of_in = MemoryOf(options_.memories, in);
  if (!of_in.ok()) return of_in.status();
  const auto of_out = MemoryOf(options_.memories, out);
  if (!of_out.ok()) return of_out.status();
  if (in == nullptr || out == nullptr || *of_in == *of_out) {
    return in == nullptr ? of_out : of_in;
  }
  return absl::InvalidArgumentError(
      "input and output are in memories of different kinds");
}

absl::Status NetGroup::Execute(const CallWords& words, const Call& call,
                               const Planned& planned, Operands* operands) {
  if (call.op == ReduceOp::kAverage) operands->op = ReduceOp::kSum;
  Execution execution(
      {ledger_.get(), links_.get(), loans_.get(), targets_.get(), &windows_},
      number_, words, *operands, options_.timeout);
  absl::Status status = execution.Run(planned.schedule);
  if (!status.ok()) FreeOperands();
  if (!status.ok() || call.op != ReduceOp::kAverage) return status;
  const bool has_blocks = call.operation == Operation::kReduceScatter;
  if (call.count == 0) return status;
  status = operands->data_memory->Divide(
      call.dtype,
      At(operands->data, has_blocks ? rank() * call.count : 0, call.dtype),
      ranks(), static_cast<size_t>(call.count));
  return status.ok() ? status : Fail(status);
}

void NetGroup::FreeOperands() {
  Report();  // before a peer sees a connection end
  targets_->Withdraw();
  const absl::Time deadline = base::SteadyNow() + kLoanPatience;
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    ledger_->Drop(number_);
    const absl::optional<int> borrower = loans_->Borrower();
    const absl::optional<int> writer = targets_->Writer();
    if (!borrower.has_value() && !writer.has_value()) return;
    const absl::Duration left = deadline - base::SteadyNow();
    if (left <= absl::ZeroDuration()) {
      if (borrower.has_value()) links_->Disconnect(*borrower);
      if (writer.has_value()) listener_->Disconnect(*writer);
    }
    ledger_->signal().Await(seen, std::max(left, absl::Milliseconds(1)));
  }
}

absl::StatusOr<const NetGroup::Planned*> NetGroup::PlanOf(const Call& call) {
  const auto size = static_cast<int64_t>(tensor::ElementSize(call.dtype));
  const PlanKey key = {call.operation, call.root, call.count, size};
  const auto known = plans_.find(key);
  if (known != plans_.end()) return &known->second;
  Question question;
  question.operation = call.operation;
  question.root = call.root;
  question.count = BufferCount(call, ranks());
  question.element_size = size;
  question.hosts = hosts_;
  question.inside_host = options_.inside_host;
  question.between_hosts = options_.between_hosts;
  const absl::StatusOr<Choice> choice = Choose(question, overrides_);
  if (!choice.ok()) return choice.status();
  if (plans_.size() >= kMaxPlans) plans_.clear();
  Planned& planned = plans_[key];
  planned.description = collectives::Describe(*choice);
  planned.schedule = MakeSchedule(choice->chosen.plan, rank());
  planned.extent = ExtentOf(planned.schedule);
  return &planned;
}

}  // namespace penstock::collectives
