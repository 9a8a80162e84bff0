#include "frameworks/torch/remote_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frameworks/torch/mailbox.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace pytorch {
namespace {

// The first tag of windows. Programs use tags from 0 to 2^31 - 1.
constexpr uint32_t kFirstTag = uint32_t{1} << 31;

bool IsInside(int64_t offset, size_t bytes, size_t size) {
  return offset >= 0 && bytes <= size &&
         static_cast<uint64_t>(offset) <= size - bytes;
}

// Copies bytes of a message. The ranges may overlap if a rank puts its own
// memory.
void CopyPart(const memory::Payload& message, size_t offset, size_t length,
              void* into) {
  auto* to = static_cast<uint8_t*>(into);
  for (const memory::Bytes& piece : message.Part(offset, length)) {
    std::memmove(to, piece.data, piece.size);
    to += piece.size;
  }
}

}  // namespace

RemoteMemory::RemoteMemory(Mailbox* mailbox, int rank, int ranks,
                           uint32_t number)
    : mailbox_(mailbox),
      rank_(rank),
      tag_(kFirstTag + number),
      origins_(ranks) {}

// Also receives from this rank itself, because such a receive reports the end
// of the mailbox.
void RemoteMemory::Open() {
  for (int from = 0; from < static_cast<int>(origins_.size()); ++from) {
    ReceiveNext(from);
  }
}

void RemoteMemory::Attach(const memory::Bytes& memory) {
  // Releases the former owner without the lock. The owner of a tensor may need
  // Python's lock.
  memory::Bytes former = memory;
  base::MutexLock lock(&mu_);
  std::swap(memory_, former);
}

void RemoteMemory::Detach() { Attach({}); }

void RemoteMemory::Close() {
  for (int to = 0; to < static_cast<int>(origins_.size()); ++to) {
    Send(to, {Kind::kClose, 0}, {}, nullptr);
  }
}

void RemoteMemory::Put(int to, int64_t offset, memory::Bytes bytes, Done done) {
  if (to == rank_) return done(Write(offset, memory::Payload(bytes), 0));
  Send(to, {Kind::kPut, offset}, std::move(bytes), std::move(done));
}

void RemoteMemory::Signal(int to, Done done) {
  if (to == rank_) {
    AddSignal(to);
    return done(absl::OkStatus());
  }
  Send(to, {Kind::kSignal, 0}, {}, std::move(done));
}

RemoteMemory::Ticket RemoteMemory::AwaitSignal(int from, Done done) {
  absl::Status status;
  Ticket ticket = 0;
  {
    base::MutexLock lock(&mu_);
    ticket = next_ticket_++;
    Origin& origin = origins_[from];
    if (origin.signals == 0 && origin.end.ok()) {
      origin.waiters.push_back({ticket, std::move(done)});
      return ticket;
    }
    if (origin.signals > 0) {
      --origin.signals;
    } else {
      status = origin.end;
    }
  }
  done(status);
  return ticket;
}

bool RemoteMemory::Withdraw(int from, Ticket ticket) {
  std::list<Waiter> withdrawn;  // destroyed without the lock
  base::MutexLock lock(&mu_);
  std::list<Waiter>& waiters = origins_[from].waiters;
  for (auto waiter = waiters.begin(); waiter != waiters.end(); ++waiter) {
    if (waiter->ticket != ticket) continue;
    withdrawn.splice(withdrawn.end(), waiters, waiter);
    return true;
  }
  return false;
}

void RemoteMemory::Send(int to, const Header& header, memory::Bytes bytes,
                        Done done) {
  const auto copy = std::make_shared<const Header>(header);
  memory::Payload message;
  message.Append({reinterpret_cast<const uint8_t*>(copy.get()), sizeof *copy,
                  copy, nullptr});
  message.Append(std::move(bytes));
  mailbox_->Send(to, tag_, std::move(message),
                 [done = std::move(done)](const absl::Status& status, int) {
                   if (done != nullptr) done(status);
                 });
}

void RemoteMemory::ReceiveNext(int from) {
  Origin& origin = origins_[from];
  // Returns if a receive ends immediately, on this thread: the loop below then
  // does the next turn.
  if (origin.turns.fetch_add(1) > 0) return;
  do {
    const auto header = std::make_shared<Header>();
    mailbox_->Receive(
        from, tag_,
        [self = shared_from_this(), header](int source,
                                            const memory::Payload& message) {
          return self->Take(source, message, header.get());
        },
        [self = shared_from_this(), from, header](const absl::Status& status,
                                                  int) {
          self->OnTaken(from, *header, status);
        });
  } while (origin.turns.fetch_sub(1) > 1);
}

absl::Status RemoteMemory::Take(int from, const memory::Payload& message,
                                Header* header) {
  if (message.size() >= sizeof *header) {
    CopyPart(message, 0, sizeof *header, header);
  }
  switch (header->kind) {
    case Kind::kPut:
      return Write(header->offset, message, sizeof *header);
    case Kind::kSignal:
    case Kind::kClose:
      return absl::OkStatus();
    case Kind::kNone:
      break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("rank ", from, " sent an operation of another version"));
}

absl::Status RemoteMemory::Write(int64_t offset, const memory::Payload& message,
                                 size_t begin) {
  const size_t bytes = message.size() - begin;
  memory::Bytes memory;
  {
    base::MutexLock lock(&mu_);
    memory = memory_;
  }
  if (!IsInside(offset, bytes, memory.size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("put ", bytes, " bytes at byte ", offset,
                     ", but the window of rank ", rank_, " has ", memory.size));
  }
  CopyPart(message, begin, bytes, const_cast<uint8_t*>(memory.data) + offset);
  return absl::OkStatus();
}

// Counts a signal only here, when the sender has its answer. A program that
// waits for the signal may exit immediately, and the sender would lose the
// answer.
void RemoteMemory::OnTaken(int from, const Header& header,
                           const absl::Status& status) {
  // A refused write does not end the window.
  if (!status.ok() && !absl::IsInvalidArgument(status)) {
    EndOrigin(from, status);
  } else if (status.ok() && header.kind == Kind::kSignal) {
    AddSignal(from);
  } else if (status.ok() && header.kind == Kind::kClose) {
    EndOrigin(from, absl::UnavailableError(
                        absl::StrCat("rank ", from, " has closed the window")));
  }
  {
    base::MutexLock lock(&mu_);
    if (!origins_[from].end.ok()) return;
  }
  ReceiveNext(from);
}

void RemoteMemory::AddSignal(int from) {
  std::list<Waiter> first;
  {
    base::MutexLock lock(&mu_);
    Origin& origin = origins_[from];
    if (origin.waiters.empty()) {
      ++origin.signals;
      return;
    }
    first.splice(first.end(), origin.waiters, origin.waiters.begin());
  }
  first.front().done(absl::OkStatus());
}

void RemoteMemory::EndOrigin(int from, const absl::Status& why) {
  std::list<Waiter> waiters;
  {
    base::MutexLock lock(&mu_);
    origins_[from].end = why;
    waiters.swap(origins_[from].waiters);
  }
  for (const Waiter& waiter : waiters) waiter.done(why);
}

}  // namespace pytorch
}  // namespace penstock
