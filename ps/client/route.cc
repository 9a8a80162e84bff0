#include "ps/client/route.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/wire/shard_key.h"

namespace penstock::ps {

Route::Route(uint32_t shard, std::shared_ptr<grpc::Channel> own)
    : shard_(shard), channel_(std::move(own)) {}

std::shared_ptr<grpc::Channel> Route::channel() const {
  absl::MutexLock lock(&mu_);
  return channel_;
}

std::string Route::ShardLocked() const {
  return is_named_ ? absl::StrCat(shard_) : "";
}

std::string Route::shard() const {
  absl::MutexLock lock(&mu_);
  return ShardLocked();
}

std::shared_ptr<grpc::Channel> Route::Begin(grpc::ClientContext* call) {
  absl::MutexLock lock(&mu_);
  if (is_named_) call->AddMetadata(kShardKey, ShardLocked());
  calls_[call] = false;
  return channel_;
}

bool Route::End(grpc::ClientContext* call) {
  absl::MutexLock lock(&mu_);
  const auto found = calls_.find(call);
  const bool has_moved = found->second;
  calls_.erase(found);
  return has_moved;
}

void Route::NoteAnswer(bool is_answered) {
  absl::MutexLock lock(&mu_);
  is_in_doubt_ = !is_answered;
}

bool Route::is_in_doubt() const {
  absl::MutexLock lock(&mu_);
  return is_in_doubt_;
}

uint64_t Route::moves() const {
  absl::MutexLock lock(&mu_);
  return moves_;
}

void Route::MoveTo(const std::shared_ptr<grpc::Channel>& primary) {
  absl::MutexLock lock(&mu_);
  is_named_ = true;
  if (channel_ == primary) return;
  channel_ = primary;
  is_in_doubt_ = false;
  ++moves_;
  for (auto& [call, is_cancelled] : calls_) {
    is_cancelled = true;
    call->TryCancel();
  }
}

}  // namespace penstock::ps
