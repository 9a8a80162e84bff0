#include "frameworks/torch/remote_memory.h"

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

bool IsInside(int64_t offset, int64_t bytes, size_t size) {
  const auto limit = static_cast<int64_t>(size);
  return offset >= 0 && bytes >= 0 && offset <= limit &&
         bytes <= limit - offset;
}

absl::Status NoRange(int rank, int64_t offset, int64_t bytes, size_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("put ", bytes, " bytes at byte ", offset,
                   ", but the window of rank ", rank, " has ", size));
}

}  // namespace

RemoteMemory::RemoteMemory(Mailbox* mailbox, int rank, int ranks,
                           uint32_t number)
    : mailbox_(mailbox),
      rank_(rank),
      tag_(kFirstTag + 2 * number),
      origins_(ranks) {}

void RemoteMemory::Open() {
  for (int from = 0; from < static_cast<int>(origins_.size()); ++from) {
    if (from != rank_) ReceiveNext(from);
  }
}

void RemoteMemory::Attach(const memory::Bytes& memory) {
  base::MutexLock lock(&mu_);
  memory_ = memory;
}

void RemoteMemory::Detach() { Attach({}); }

void RemoteMemory::Close() {
  for (int to = 0; to < static_cast<int>(origins_.size()); ++to) {
    if (to != rank_) Send(to, {Kind::kClose, 0, 0}, nullptr);
  }
}

void RemoteMemory::Put(int to, int64_t offset, memory::Bytes bytes, Done done) {
  const auto size = static_cast<int64_t>(bytes.size);
  if (to == rank_) {
    absl::Status status;
    {
      base::MutexLock lock(&mu_);
      if (!IsInside(offset, size, memory_.size)) {
        status = NoRange(to, offset, size, memory_.size);
      } else if (size > 0) {
        std::memmove(const_cast<uint8_t*>(memory_.data) + offset, bytes.data,
                     bytes.size);
      }
    }
    return done(status);
  }
  base::MutexLock lock(&order_);
  Send(to, {Kind::kPut, offset, size}, nullptr);
  mailbox_->Send(to, tag_ + 1, std::move(bytes),
                 [done = std::move(done)](const absl::Status& status, int) {
                   done(status);
                 });
}

void RemoteMemory::Signal(int to, Done done) {
  if (to == rank_) {
    AddSignal(to);
    return done(absl::OkStatus());
  }
  base::MutexLock lock(&order_);
  Send(to, {Kind::kSignal, 0, 0}, std::move(done));
}

void RemoteMemory::AwaitSignal(int from, Done done) {
  absl::Status status;
  {
    base::MutexLock lock(&mu_);
    Origin& origin = origins_[from];
    if (origin.signals == 0 && origin.end.ok()) {
      origin.waiters.push_back(std::move(done));
      return;
    }
    if (origin.signals > 0) {
      --origin.signals;
    } else {
      status = origin.end;
    }
  }
  done(status);
}

void RemoteMemory::Send(int to, const Header& header, Done done) {
  const auto copy = std::make_shared<Header>(header);
  memory::Bytes bytes;
  bytes.data = reinterpret_cast<const uint8_t*>(copy.get());
  bytes.size = sizeof *copy;
  bytes.owner = copy;
  mailbox_->Send(to, tag_, std::move(bytes),
                 [done = std::move(done)](const absl::Status& status, int) {
                   if (done != nullptr) done(status);
                 });
}

void RemoteMemory::ReceiveNext(int from) {
  Origin& origin = origins_[from];
  // A receive may end at once, in this thread. Then it leaves the next turn to
  // the loop.
  if (origin.turns.fetch_add(1) > 0) return;
  do {
    mailbox_->Receive(
        from, tag_, &origin.header, sizeof(Header),
        [self = shared_from_this(), from](const absl::Status& status, int) {
          self->OnHeader(from, status);
        });
  } while (origin.turns.fetch_sub(1) > 1);
}

void RemoteMemory::OnHeader(int from, const absl::Status& status) {
  if (!status.ok()) return EndOrigin(from, status);
  const Header header = origins_[from].header;
  switch (header.kind) {
    case Kind::kPut:
      return ReceiveBytes(from, header);
    case Kind::kSignal:
      AddSignal(from);
      return ReceiveNext(from);
    case Kind::kClose:
      return EndOrigin(from, absl::UnavailableError(absl::StrCat(
                                 "rank ", from, " has closed the window")));
  }
  EndOrigin(from, absl::InvalidArgumentError(absl::StrCat(
                      "rank ", from, " sent an operation of another version")));
}

// Refuses a write outside of the memory by expecting no bytes, which fails at
// the sender.
void RemoteMemory::ReceiveBytes(int from, const Header& header) {
  memory::Bytes into;
  {
    base::MutexLock lock(&mu_);
    if (IsInside(header.offset, header.bytes, memory_.size)) {
      into = memory_;
      into.data += header.offset;
      into.size = static_cast<size_t>(header.bytes);
    }
  }
  mailbox_->Receive(from, tag_ + 1, const_cast<uint8_t*>(into.data),
                    static_cast<int64_t>(into.size),
                    [self = shared_from_this(), from, owner = into.owner](
                        const absl::Status& status, int) {
                      // A refused write does not end the window.
                      if (status.ok() || absl::IsInvalidArgument(status)) {
                        self->ReceiveNext(from);
                      } else {
                        self->EndOrigin(from, status);
                      }
                    });
}

void RemoteMemory::AddSignal(int from) {
  Done done;
  {
    base::MutexLock lock(&mu_);
    Origin& origin = origins_[from];
    if (origin.waiters.empty()) {
      ++origin.signals;
      return;
    }
    done = std::move(origin.waiters.front());
    origin.waiters.pop_front();
  }
  done(absl::OkStatus());
}

void RemoteMemory::EndOrigin(int from, const absl::Status& why) {
  std::list<Done> waiters;
  {
    base::MutexLock lock(&mu_);
    origins_[from].end = why;
    waiters.swap(origins_[from].waiters);
  }
  for (const Done& done : waiters) done(why);
}

}  // namespace pytorch
}  // namespace penstock
