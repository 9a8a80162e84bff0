#include "collectives/net/letters.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "collectives/net/window.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

absl::optional<Key> Letters::NextKey(const Letter& letter, bool is_small,
                                     std::shared_ptr<Window>* window) {
  base::MutexLock lock(&mu_);
  Sent& sent = sent_[{letter.peer, letter.tag}];
  if (is_small) {
    std::shared_ptr<Window>& all = small_[letter.peer];
    if (all == nullptr) all = std::make_shared<Window>();
    if (sent.small == nullptr) sent.small = std::make_shared<Window>(all);
    if (!sent.small->IsBelow(kTagWindow) || !all->IsBelow(kPeerWindow)) {
      return absl::nullopt;
    }
    *window = sent.small;
  }
  return Key{ChannelOf(letter.tag), ++sent.letters, 0};
}

absl::Status Letters::Send(const Letter& letter, const void* data) {
  absl::Status status = ledger_->status();
  if (!status.ok()) return status;
  if (ledger_->HasLeft(letter.peer, Ledger::kAnyOperation)) {
    return ledger_->End(Fault::kLeft, letter.peer, "");
  }
  const auto bytes = static_cast<int64_t>(BytesOf(letter.dtype, letter.count));
  return bytes <= kBuffered ? SendSmall(letter, data) : SendLarge(letter, data);
}

absl::Status Letters::SendSmall(const Letter& letter, const void* data) {
  Patience patience(ledger_, timeout_);
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    std::shared_ptr<Window> window;
    const absl::optional<Key> key = NextKey(letter, true, &window);
    if (key.has_value()) {
      return SendPart(letter, *key, data,
                      static_cast<int64_t>(BytesOf(letter.dtype, letter.count)),
                      window);
    }
    absl::Status waited = patience.Await(letter.peer, seen);
    if (!waited.ok()) return waited;
  }
}

absl::Status Letters::SendLarge(const Letter& letter, const void* data) {
  auto window = std::make_shared<Window>();
  Key key = *NextKey(letter, false, nullptr);
  const auto bytes = static_cast<int64_t>(BytesOf(letter.dtype, letter.count));
  Patience patience(ledger_, timeout_);
  int64_t done = 0;
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    if (done == bytes && window->IsBelow(1)) return ledger_->status();
    absl::Status status;
    if (done < bytes && window->IsBelow(Execution::kWindow)) {
      const int64_t part = std::min(kMaxPartBytes, bytes - done);
      status = SendPart(letter, key, static_cast<const uint8_t*>(data) + done,
                        part, window);
      done += part;
      ++key.part;
      patience.Restart();
    } else if (done < bytes) {
      status = patience.Await(letter.peer, seen);
    } else {
      status = patience.AwaitAnswers(letter.peer, seen);
    }
    if (!status.ok()) return status;
  }
}

absl::Status Letters::SendPart(const Letter& letter, const Key& key,
                               const void* data, int64_t bytes,
                               const std::shared_ptr<Window>& window) {
  const absl::Status sent =
      links_->SendPart(letter.peer, key, Encode(letter), data,
                       static_cast<size_t>(bytes), window);
  if (sent.ok()) return ledger_->status();
  return ledger_->End(
      Fault::kFailed, ledger_->rank(),
      absl::StrCat("rank ", ledger_->rank(), ": ", sent.message()));
}

absl::Status Letters::Receive(const Letter& letter, void* data) {
  Key key = {ChannelOf(letter.tag), 0, 0};
  {
    base::MutexLock lock(&mu_);
    key.number = ++received_[{letter.peer, letter.tag}];
  }
  const auto bytes = static_cast<int64_t>(BytesOf(letter.dtype, letter.count));
  Patience patience(ledger_, timeout_);
  int64_t done = 0;
  while (true) {
    const uint32_t seen = ledger_->signal().count();
    const absl::optional<Part> part = ledger_->Take(letter.peer, key);
    if (!part.has_value()) {
      absl::Status waited = patience.Await(letter.peer, seen);
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
