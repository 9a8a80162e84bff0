#include "ps/sparse/spill.h"

#include "absl/strings/str_cat.h"

namespace penstock::ps::sparse {

bool Spill::Put(uint32_t shard, const Row& row) {
  if (failed_) return false;
  const absl::Status status = tier_->Put(
      {shard, row.id}, {reinterpret_cast<const char*>(&row), row_bytes_});
  if (status.ok()) return true;
  base::MutexLock lock(&mu_);
  no_room_ = status;
  return false;
}

bool Spill::Promise(size_t rows) {
  const uint64_t all = promised_ += rows;
  const uint64_t left = tier_->BytesLeft() / row_bytes_;
  if (all <= left) return true;
  promised_ -= rows;
  base::MutexLock lock(&mu_);
  no_room_ = absl::ResourceExhaustedError(absl::StrCat(
      "it has room for ", left, " rows more, ", all - rows,
      " of which others have reserved, and ", rows, " more are needed"));
  return false;
}

bool Spill::Get(uint32_t shard, uint64_t id, Row* row) {
  if (failed_) return false;
  const auto found =
      tier_->Get({shard, id}, reinterpret_cast<char*>(row), row_bytes_);
  if (!found.ok()) Fail("read a row", found.status());
  return found.ok() && *found;
}

void Spill::Erase(uint32_t shard, uint64_t id) {
  if (failed_) return;
  const absl::Status status = tier_->Erase({shard, id});
  if (!status.ok()) Fail("remove a row", status);
}

const Row* Spill::Walk::Next() {
  const auto more =
      rows_->Next(reinterpret_cast<char*>(row_.row()), spill_->row_bytes_);
  if (!more.ok()) spill_->Fail("read all rows", more.status());
  return more.ok() && *more ? row_.row() : nullptr;
}

std::unique_ptr<Spill::Walk> Spill::Begin() {
  auto rows = tier_->Begin();
  if (!rows.ok()) {
    Fail("read all rows", rows.status());
    return nullptr;
  }
  return std::unique_ptr<Walk>(new Walk(this, *std::move(rows)));
}

void Spill::Fail(const char* what, const absl::Status& why) {
  base::MutexLock lock(&mu_);
  if (!status_.ok()) return;
  status_ = absl::DataLossError(absl::StrCat(
      "sparse table '", table_, "': cannot ", what, " of those on disk: ",
      why.message(), "; rows are lost: restart the servers from a checkpoint"));
  failed_ = true;
}

absl::Status Spill::status() const {
  if (!failed_) return absl::OkStatus();
  base::MutexLock lock(&mu_);
  return status_;
}

absl::Status Spill::no_room() const {
  base::MutexLock lock(&mu_);
  return no_room_;
}

}  // namespace penstock::ps::sparse
