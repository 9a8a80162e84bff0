#include "collectives/host/mail.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/elements.h"
#include "collectives/fault.h"
#include "collectives/host/control.h"
#include "collectives/host/futex.h"
#include "collectives/host/member.h"
#include "collectives/host/watch.h"
#include "collectives/letter.h"
#include "transport/base/byte_order.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {
namespace {

// The size of a letter's head in a ring: two words of 64 bits, u32 tag, u32
// unused.
constexpr size_t kHeadBytes = 24;
// The number of checks of the peer between two checks of the clock: about 1 us.
constexpr int kLooksPerClock = 64;

// Returns the memory that a kept letter of `bytes` costs. Includes 512 bytes
// for the letter's record, so that empty letters are bounded, too.
uint64_t CostOf(size_t bytes) { return uint64_t{bytes} + 512; }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Mail::Mail(Members* members, Watch* watch, uint64_t max_kept_bytes,
           progress::PollingMode polling)
    : members_(members),
      watch_(watch),
      max_kept_bytes_(max_kept_bytes),
      policy_(polling),
      outgoing_(members->peers.size()),
      incoming_(members->peers.size()) {}

absl::Status Mail::Await(int peer, const std::atomic<uint32_t>& word,
                         const std::function<bool()>& ready) {
  if (ready()) return absl::OkStatus();
  const absl::Time begun = base::SteadyNow();
  const absl::Duration budget =
      std::min(policy_.Budget(begun),
               absl::Nanoseconds(progress::SpinPolicy::kMaxNanos));
  // Counts lost cores. The thread sleeps only after losses in several
  // consecutive waits.
  thread_local progress::CoreLosses losses;
  absl::Time now = begun;
  while (now - begun < budget) {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (ready()) return absl::OkStatus();
      Pause();
    }
    now = base::SteadyNow();
    sched_yield();  // the peer may need this core
    const absl::Time back = base::SteadyNow();
    policy_.RecordYield(back - now, back, &losses);
  }
  Watch::Wait wait;
  wait.came = [peer, &ready](int rank) { return rank != peer || ready(); };
  wait.begun = begun;
  wait.late = peer;
  std::atomic<uint32_t>& sleeping = members_->own->mail(peer).sleeping;
  sleeping.fetch_add(1, std::memory_order_seq_cst);
  absl::Status status = watch_->Look(&wait);
  while (status.ok() && !ready()) {
    const uint32_t value = word.load(std::memory_order_seq_cst);
    if (!ready()) FutexWait(word, value);
    if (!ready()) status = watch_->Look(&wait);
  }
  sleeping.fetch_sub(1, std::memory_order_relaxed);
  policy_.Record(status.ok(), base::SteadyNow() - begun);
  return status;
}

absl::Status Mail::Write(int to, const void* data, size_t bytes) {
  MailWords& own = members_->own->mail(to);
  const MailWords& theirs = members_->peers[to]->mail(members_->rank);
  uint8_t* const ring = members_->own->ring(to);
  const auto size = static_cast<uint32_t>(members_->own->sizes().ring_bytes());
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const uint32_t written = own.written.load(std::memory_order_relaxed);
    const auto room = [&] {
      // Caps the result at the ring's size, because the peer's counter may be
      // wrong. The bytes read are then wrong, too.
      return size - std::min(size, written - theirs.read.load());
    };
    absl::Status status = Await(to, theirs.read, [&] { return room() > 0; });
    if (!status.ok()) return status;
    const uint32_t at = written % size;
    // Writes at most half of the ring in one piece, so that the peer can read
    // while this rank writes the other half.
    const size_t part = std::min<size_t>(
        {bytes, room(), size - at, std::max<uint32_t>(size / 2, 1)});
    std::memcpy(ring + at, from, part);
    own.written.store(written + static_cast<uint32_t>(part));
    if (theirs.sleeping.load() != 0) FutexWake(own.written);
    from += part;
    bytes -= part;
  }
  return absl::OkStatus();
}

absl::Status Mail::Read(int from, void* data, size_t bytes) {
  MailWords& own = members_->own->mail(from);
  const MailWords& theirs = members_->peers[from]->mail(members_->rank);
  const uint8_t* const ring = members_->peers[from]->ring(members_->rank);
  const auto size = static_cast<uint32_t>(members_->own->sizes().ring_bytes());
  auto* into = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const uint32_t read = own.read.load(std::memory_order_relaxed);
    const auto available = [&] {
      return std::min(size, theirs.written.load() - read);
    };
    absl::Status status =
        Await(from, theirs.written, [&] { return available() > 0; });
    if (!status.ok()) return status;
    const uint32_t at = read % size;
    const size_t part = std::min<size_t>({bytes, available(), size - at});
    std::memcpy(into, ring + at, part);
    own.read.store(read + static_cast<uint32_t>(part));
    if (theirs.sleeping.load() != 0) FutexWake(own.read);
    into += part;
    bytes -= part;
  }
  return absl::OkStatus();
}

absl::Status Mail::Send(const Letter& letter, const void* data) {
  base::MutexLock lock(&outgoing_[letter.peer].mu);
  absl::Status status = watch_->Ready();
  if (!status.ok()) return status;
  const CallWords words = Encode(letter);
  uint8_t head[kHeadBytes] = {};
  base::StoreLittle(words[0], head);
  base::StoreLittle(words[1], head + 8);
  base::StoreLittle(letter.tag, head + 16);
  status = Write(letter.peer, head, sizeof head);
  if (!status.ok()) return status;
  return Write(letter.peer, data, BytesOf(letter.dtype, letter.count));
}

std::unique_ptr<Mail::Kept> Mail::TakeOrBecomeReader(const Letter& letter) {
  Incoming& incoming = incoming_[letter.peer];
  base::MutexLock lock(&incoming.mu);
  while (true) {
    const auto found =
        std::find_if(incoming.kept.begin(), incoming.kept.end(),
                     [&](const Kept& k) { return k.letter.tag == letter.tag; });
    if (found != incoming.kept.end()) {
      auto kept = std::make_unique<Kept>(std::move(*found));
      incoming.kept_bytes -= CostOf(kept->bytes.size);
      incoming.kept.erase(found);
      return kept;
    }
    if (!incoming.has_reader) {
      incoming.has_reader = true;
      return nullptr;
    }
    incoming.changed.wait(incoming.mu);
  }
}

absl::Status Mail::Receive(const Letter& letter, void* data) {
  absl::Status status = watch_->Ready();
  if (!status.ok()) return status;
  const std::unique_ptr<Kept> kept = TakeOrBecomeReader(letter);
  if (kept != nullptr) {
    if (Encode(kept->letter) != Encode(letter)) {
      return Mismatch(kept->letter, letter);
    }
    Copy(kept->bytes.data.get(), data, kept->bytes.size);
    return absl::OkStatus();
  }
  // Checks again, because another thread, such as the reader of the ring, may
  // have ended the group.
  status = watch_->Ready();
  if (status.ok()) status = ReadUntil(letter, data);
  Incoming& incoming = incoming_[letter.peer];
  base::MutexLock lock(&incoming.mu);
  incoming.has_reader = false;
  incoming.changed.notify_all();
  return status;
}

absl::Status Mail::ReadUntil(const Letter& letter, void* data) {
  while (true) {
    uint8_t head[kHeadBytes];
    absl::Status status = Read(letter.peer, head, sizeof head);
    if (!status.ok()) return status;
    Letter sent = letter;
    const auto dtype = base::LoadLittle<uint64_t>(head);
    const auto count = base::LoadLittle<uint64_t>(head + 8);
    sent.tag = base::LoadLittle<uint32_t>(head + 16);
    if (dtype > 0xFF || !tensor::IsDType(static_cast<int>(dtype)) ||
        count >
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 8)) {
      return watch_->End(
          Fault::kFailed, letter.peer,
          absl::StrCat("rank ", letter.peer, " sends a malformed message"));
    }
    sent.dtype = static_cast<tensor::DType>(dtype);
    sent.count = static_cast<int64_t>(count);
    if (sent.tag == letter.tag) {
      if (Encode(sent) != Encode(letter)) return Mismatch(sent, letter);
      return Read(letter.peer, data, BytesOf(letter.dtype, letter.count));
    }
    status = Keep(sent);
    if (!status.ok()) return status;
  }
}

absl::Status Mail::Keep(const Letter& letter) {
  Incoming& incoming = incoming_[letter.peer];
  const size_t bytes = BytesOf(letter.dtype, letter.count);
  uint64_t kept_bytes;
  {
    base::MutexLock lock(&incoming.mu);
    kept_bytes = incoming.kept_bytes;
  }
  absl::StatusOr<memory::Block> block =
      kept_bytes + CostOf(bytes) <= max_kept_bytes_
          ? memory::AllocateBlock(bytes)
          : absl::ResourceExhaustedError("too many are kept");
  if (!block.ok()) {
    return watch_->End(
        Fault::kFailed, letter.peer,
        absl::StrCat("rank ", members_->rank, " cannot keep ", bytes,
                     " bytes of rank ", letter.peer, " with tag ", letter.tag,
                     ", which nobody receives: ", block.status().message()));
  }
  absl::Status status = Read(letter.peer, block->data.get(), bytes);
  if (!status.ok()) return status;
  base::MutexLock lock(&incoming.mu);
  incoming.kept.push_back({letter, *std::move(block)});
  incoming.kept_bytes += CostOf(bytes);
  incoming.changed.notify_all();
  return absl::OkStatus();
}

absl::Status Mail::Mismatch(const Letter& sent, const Letter& wanted) {
  return watch_->End(Fault::kMismatch, wanted.peer,
                     DescribeMismatch(Encode(sent), wanted, members_->rank));
}

}  // namespace penstock::collectives
