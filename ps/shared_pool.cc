#include "ps/shared_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/bytes_text.h"
#include "transport/base/log.h"

namespace penstock::ps {
namespace {

using base::BytesText;

std::string Reason(uint64_t taken, const SharedLimit& wanted, uint64_t values,
                   uint64_t least) {
  if (taken < wanted.bytes) return "as PENSTOCK_SHM_ARENA_MIB says";
  if (taken > wanted.bytes) return "as for an earlier model";
  if (wanted.is_short) {
    return absl::StrCat(
        "three quarters of what this process may use. The ", BytesText(values),
        " of dense values want twice their size, so some are pulled over TCP");
  }
  return absl::StrCat(BytesText(least), " and twice the ", BytesText(values),
                      " of dense values");
}

}  // namespace

penstock::Allocator::Buffer SharedPool::Allocate(size_t bytes) {
  auto buffer = penstock::Allocator::Allocate(bytes);
  static std::atomic<bool> is_said{false};
  if (buffer && !buffer.is_pooled() && !is_said.exchange(true)) {
    base::LogWarning(absl::StrCat(
        "ps: ", BytesText(bytes),
        " have no room in the memory that is shared with workers on this "
        "host: what they pull goes over TCP. A larger "
        "PENSTOCK_SHM_ARENA_MIB of this server helps: dense tables want "
        "twice their size"));
  }
  return buffer;
}

SharedLimit LimitFor(uint64_t values, uint64_t least, uint64_t usable) {
  const uint64_t most = std::max(least, usable / 4 * 3);
  const uint64_t room = (most - least) / 2;
  if (values > room) return {most, /*is_short=*/true};
  return {least + 2 * values, /*is_short=*/false};
}

std::function<void(uint64_t values)> MakeSharedRoom(
    uint64_t usable, std::function<void(const std::string&)> log) {
  const uint64_t least = penstock::Allocator::RaiseLimit(0);
  return [usable, least, log = std::move(log)](uint64_t values) {
    if (values == 0) return;
    const SharedLimit wanted = LimitFor(values, least, usable);
    const uint64_t taken = penstock::Allocator::RaiseLimit(wanted.bytes);
    log(absl::StrCat("memory shared with workers on this host: up to ",
                     BytesText(taken), ", ",
                     Reason(taken, wanted, values, least)));
  };
}

}  // namespace penstock::ps
