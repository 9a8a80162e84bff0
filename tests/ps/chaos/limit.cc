#include "tests/ps/chaos/limit.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

// The time that one wait counts for, even if the wait was longer because the
// program was stopped or had no processor.
constexpr absl::Duration kSlice = absl::Seconds(1);

}  // namespace

Limit::Limit(absl::Duration limit, std::function<std::string()> report)
    : thread_([this, limit, report = std::move(report)] {
        std::unique_lock<std::mutex> lock(mu_);
        const auto slice = absl::ToChronoNanoseconds(kSlice);
        for (absl::Duration time; time < limit; time += kSlice) {
          if (changed_.wait_for(lock, slice, [this] { return ends_; })) return;
        }
        const std::string text = absl::StrCat(
            "not done after ", absl::FormatDuration(limit), "\n", report());
        std::fputs(text.c_str(), stderr);
        // Calls _exit() instead of exit(), because other threads are in the
        // middle of the test.
        _exit(1);
      }) {}

Limit::~Limit() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace penstock::ps
