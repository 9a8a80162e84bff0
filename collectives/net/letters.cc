#include "collectives/net/letters.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/elements.h"
#include "collectives/fault.h"
#include "collectives/net/execution.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/message.h"
#include "collectives/net/patience.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {
namespace {

// A rank that has left receives no letters, whatever its last operation was.
constexpr uint64_t kAnyNumber = std::numeric_limits<uint64_t>::max();

}  // namespace

uint64_t Letters::NextNumber(Numbers* numbers, const Letter& letter) {
  base::MutexLock lock(&mu_);
  return ++(*numbers)[{letter.peer, letter.tag}];
}

absl::Status Letters::Send(const Letter& letter, const void* data) {
  const absl::Status present = ledger_->CheckPresent(letter.peer, kAnyNumber);
  if (!present.ok()) return present;
  Key key = {ChannelOf(letter.tag), NextNumber(&sent_, letter), 0};
  const auto bytes = static_cast<int64_t>(BytesOf(letter.dtype, letter.count));
  const auto window = std::make_shared<std::atomic<int64_t>>(0);
  Patience patience(ledger_, links_, 0, {}, timeout_);
  // Small letters are on their way when this function returns.
  const int64_t limit = bytes <= kBuffered ? Execution::kWindow : 0;
  int64_t done = 0;
  bool is_sent = false;
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    if (!is_sent && window->load() < Execution::kWindow) {
      const int64_t part = std::min(Execution::kPartBytes, bytes - done);
      const absl::Status status = links_->SendPart(
          letter.peer, key, Encode(letter),
          static_cast<const uint8_t*>(data) + done, part, window);
      if (!status.ok()) {
        return ledger_->End(
            Fault::kFailed, ledger_->rank(),
            absl::StrCat("rank ", ledger_->rank(), ": ", status.message()));
      }
      done += part;
      ++key.part;
      is_sent = done == bytes;
      patience.Restart();
      continue;
    }
    if (is_sent && window->load() <= limit) {
      return ledger_->status();
    }
    const absl::Status waited = patience.Await(letter.peer, seen);
    if (!waited.ok()) return waited;
  }
}

absl::Status Letters::Receive(const Letter& letter, void* data) {
  Key key = {ChannelOf(letter.tag), NextNumber(&received_, letter), 0};
  const auto bytes = static_cast<int64_t>(BytesOf(letter.dtype, letter.count));
  Patience patience(ledger_, links_, 0, {}, timeout_);
  int64_t done = 0;
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    const absl::optional<Part> part = ledger_->Take(letter.peer, key);
    if (!part.has_value()) {
      const absl::Status waited = patience.Await(letter.peer, seen);
      if (!waited.ok()) return waited;
      continue;
    }
    const auto size = static_cast<int64_t>(part->payload.size());
    if (part->words != Encode(letter) || size > bytes - done ||
        (size == 0 && bytes > 0)) {
      return ledger_->End(
          Fault::kMismatch, letter.peer,
          DescribeMismatch(part->words, letter, ledger_->rank()));
    }
    part->payload.CopyTo(static_cast<uint8_t*>(data) + done);
    done += size;
    ++key.part;
    if (done == bytes) return absl::OkStatus();
    patience.Restart();
  }
}

}  // namespace penstock::collectives
