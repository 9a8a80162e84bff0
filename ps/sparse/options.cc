#include "ps/sparse/options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "ps/sparse/admission.h"
#include "ps/sparse/removals.h"
#include "ps/sparse/row_store.h"

namespace penstock::ps::sparse {
namespace {

// Limit dim and the number of slots. Together they keep a row below 40 MiB.
constexpr size_t kMaxDim = 1 << 20;
constexpr size_t kMaxSlots = 8;
constexpr size_t kMaxShards = 1 << 12;
constexpr size_t kMaxCandidates = size_t{1} << 32;
// The bytes of a shard's first index and first page of rows.
constexpr size_t kFirstBytesOfShard = 4608;

absl::Status Invalid(const Options& options, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("sparse table '", options.name, "': ", why));
}

absl::Status ValidateInitial(const Options& options) {
  const Initial& initial = options.initial;
  if (initial.kind == Initial::Kind::kUniform &&
      !(std::isfinite(initial.low) && std::isfinite(initial.high) &&
        initial.low < initial.high)) {
    return Invalid(options, "initial: low and high are finite, low < high");
  }
  if (initial.kind == Initial::Kind::kNormal &&
      !(std::isfinite(initial.mean) && std::isfinite(initial.stddev) &&
        initial.stddev >= 0)) {
    return Invalid(options, "initial: mean and stddev are finite, stddev >= 0");
  }
  for (const float slot : options.initial_slots) {
    if (!std::isfinite(slot)) {
      return Invalid(options, "initial_slots are finite");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateLimits(const Options& options) {
  if (options.min_count == 0)
    return Invalid(options, "min_count is at least 1");
  if (options.min_count > 1 && options.store_on_pull) {
    return Invalid(options, "store_on_pull would pass by min_count");
  }
  if (options.min_count > 1 &&
      (options.candidates == 0 || options.candidates > kMaxCandidates)) {
    return Invalid(options, "candidates is from 1 to 2^32");
  }
  if (options.time_to_live < absl::Seconds(1)) {
    return Invalid(options, "time_to_live is at least a second");
  }
  if (options.max_rows > 0 && options.max_rows < options.shards) {
    return Invalid(
        options, absl::StrCat("max_rows is at least shards, ", options.shards));
  }
  if (options.max_removals > kMaxCandidates) {
    return Invalid(options, "max_removals is at most 2^32");
  }
  return absl::OkStatus();
}

absl::Status ValidateSpill(const Options& options) {
  if (options.above_budget != AboveBudget::kSpill) return absl::OkStatus();
  if (options.budget_bytes == 0) {
    return Invalid(options, "a table that spills has a budget_bytes");
  }
  if (options.max_rows > 0) {
    return Invalid(options, "a table that spills has no max_rows");
  }
  return absl::OkStatus();
}

absl::Status ValidateBudget(const Options& options) {
  if (options.budget_bytes == 0) return absl::OkStatus();
  const size_t least = LeastBudget(options);
  if (options.budget_bytes < least) {
    return Invalid(
        options, absl::StrCat("budget_bytes is at least ", least, " for ",
                              options.shards, " shards, ", options.max_removals,
                              " removals",
                              options.min_count > 1 ? " and candidates" : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const Options& options) {
  if (options.name.empty()) return Invalid(options, "name is empty");
  if (options.dim == 0 || options.dim > kMaxDim) {
    return Invalid(options, absl::StrCat("dim is from 1 to ", kMaxDim));
  }
  if (options.slots() > kMaxSlots) {
    return Invalid(options, absl::StrCat("at most ", kMaxSlots, " slots"));
  }
  if (options.shards == 0 || options.shards > kMaxShards ||
      (options.shards & (options.shards - 1)) != 0) {
    return Invalid(options,
                   absl::StrCat("shards is a power of two up to ", kMaxShards));
  }
  if (options.memory == nullptr) return Invalid(options, "memory is null");
  for (const auto& validate :
       {ValidateInitial, ValidateLimits, ValidateSpill, ValidateBudget}) {
    if (absl::Status status = validate(options); !status.ok()) return status;
  }
  return absl::OkStatus();
}

size_t LeastBudget(const Options& options) {
  const size_t row =
      2 * sizeof(Row) + options.dim * (1 + options.slots()) * sizeof(float);
  return (FixedBytesOfShard(options) + kFirstBytesOfShard + row) *
         options.shards;
}

size_t FixedBytesOfShard(const Options& options) {
  const size_t candidates =
      options.min_count > 1
          ? Admission::BytesFor(options.candidates / options.shards)
          : 0;
  const size_t fetched =
      options.above_budget == AboveBudget::kSpill
          ? RowStore::StrideOf(options.dim * (1 + options.slots()))
          : 0;
  return candidates + fetched +
         Removals::BytesFor(options.max_removals / options.shards);
}

absl::Status Exhausted(const Options& options, const std::string& why) {
  return absl::ResourceExhaustedError(
      absl::StrCat("sparse table '", options.name, "': ", why));
}

}  // namespace penstock::ps::sparse
