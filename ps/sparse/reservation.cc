#include "ps/sparse/reservation.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/sparse/table.h"

namespace penstock::ps::sparse {

Reservation::Reservation(Table* table)
    : table_(table), rows_(table->parts_.size()) {}

Reservation::Reservation(Reservation&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)),
      rows_(std::move(other.rows_)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  Release();
  table_ = std::exchange(other.table_, nullptr);
  rows_ = std::move(other.rows_);
  return *this;
}

absl::Status Reservation::Merge(Reservation other) {
  if (other.table_ == nullptr) return absl::OkStatus();
  absl::Status status = CheckIsOf(other.table_);
  if (!status.ok()) return status;
  for (size_t s = 0; s < rows_.size(); ++s) rows_[s] += other.rows_[s];
  other.table_ = nullptr;
  return absl::OkStatus();
}

size_t Reservation::rows() const {
  return table_ == nullptr
             ? 0
             : std::accumulate(rows_.begin(), rows_.end(), size_t{0});
}

absl::Status Reservation::CheckIsOf(Table* table) {
  if (table_ == nullptr) *this = Reservation(table);
  if (table_ == table) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "sparse table '", table->options().name,
      "': the reservation is of table '", table_->options().name, "'"));
}

void Reservation::Release() {
  if (table_ == nullptr) return;
  for (size_t s = 0; s < rows_.size(); ++s) {
    if (rows_[s] == 0) continue;
    Table::Part& part = *table_->parts_[s];
    base::MutexLock lock(&part.mu);
    part.shard.Unreserve(rows_[s]);
  }
  table_ = nullptr;
}

}  // namespace penstock::ps::sparse
