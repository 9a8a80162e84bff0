#include "transport/session/message_reader.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace session {
namespace {

constexpr uint32_t kLifeline = 0;

fabric::RemoteRegion ToRemote(const wire::AnnouncedRegion& region) {
  fabric::RemoteRegion remote;
  for (const wire::AnnouncedPart& part : region.parts) {
    remote.push_back({part.key, part.offset, part.length});
  }
  return remote;
}

// Returns true if the message is small enough for the sender to keep it a few
// milliseconds longer than necessary.
bool IsSmall(const wire::Announce& announce) {
  constexpr uint64_t kMaxBytes = 4 * 1024 * 1024;
  return announce.length <= kMaxBytes;
}

}  // namespace

MessageReader::MessageReader(fabric::Endpoint* lifeline, uint64_t budget,
                             bool load_in_place, Owner* owner,
                             const Tuning& tuning)
    : lifeline_(lifeline),
      budget_(budget),
      load_in_place_(load_in_place),
      owner_(owner),
      tuning_(tuning),
      lifeline_tuner_(MakeTuner(*lifeline)),
      fast_tuner_(lifeline_tuner_) {}

protocol::ChunkTuner MessageReader::MakeTuner(
    const fabric::Endpoint& path) const {
  const fabric::Capabilities& capabilities = path.capabilities();
  return protocol::ChunkTuner(tuning_.ChunkBounds(capabilities),
                              capabilities.push_bytes > 0,
                              capabilities.max_reads);
}

void MessageReader::UseFastPath(fabric::Endpoint* path, uint32_t epoch) {
  fast_path_ = path;
  fast_epoch_ = epoch;
  fast_tuner_ = MakeTuner(*path);
}

const wire::AnnouncedRegion* MessageReader::FindRegion(
    const wire::Announce& announce, uint32_t path) const {
  for (const wire::AnnouncedRegion& region : announce.regions) {
    if (region.path == path) return &region;
  }
  return nullptr;
}

const wire::AnnouncedRegion* MessageReader::FindFast(
    const wire::Announce& announce) const {
  return fast_path_ == nullptr ? nullptr : FindRegion(announce, fast_epoch_);
}

MessageReader::Filled MessageReader::LoseFastPath() {
  std::vector<uint64_t> cut_off;
  for (uint64_t id : under_way_) {
    if (fast_path_ != nullptr && pulls_[id].path == fast_path_) {
      cut_off.push_back(id);
    }
  }
  fast_path_ = nullptr;
  Filled filled;
  for (uint64_t id : cut_off) {
    auto it = pulls_.find(id);
    if (it == pulls_.end()) continue;
    Pull& pull = it->second;
    filled.push_back(std::move(pull.landing));
    pull.puller = nullptr;
    under_way_.erase(id);
    in_use_ -= pull.announce.length;
    if (pull.wanted) {
      Start(id);
    } else {
      abandoned_ -= pull.announce.length;
      Fail(id, absl::CancelledError("the stream ended"));
    }
  }
  StartDeferred();
  return filled;
}

MessageReader::Filled MessageReader::Stop() {
  fabric::Endpoint* const lost = std::exchange(fast_path_, nullptr);
  deferred_.clear();
  wanted_.clear();
  Filled filled;
  for (auto it = pulls_.begin(); it != pulls_.end();) {
    Pull& pull = it->second;
    if (std::exchange(pull.wanted, false) && pull.landing != nullptr) {
      abandoned_ += pull.announce.length;
    }
    const bool is_reading = pull.puller != nullptr && pull.path != lost;
    if (is_reading) {
      pull.puller->Abandon();
      FreeDestinations(it->first, &pull);
      ++it;
    } else {
      if (pull.landing != nullptr) filled.push_back(std::move(pull.landing));
      under_way_.erase(it->first);
      of_streams_.erase({pull.stream, it->first});
      pending_parts_ -= pull.announce.max_parts();
      it = pulls_.erase(it);
    }
  }
  return filled;
}

absl::Status MessageReader::Begin(
    uint32_t stream, const wire::Announce& announce,
    std::shared_ptr<memory::Destinations> destinations) {
  if (pulls_.count(announce.id) > 0) {
    return absl::InvalidArgumentError("the peer announced a message twice");
  }
  if (LoadInPlace(stream, announce)) return absl::OkStatus();
  Pull& pull = pulls_[announce.id];
  pull.stream = stream;
  pull.announce = announce;
  pull.destinations = std::move(destinations);
  pending_parts_ += announce.max_parts();
  of_streams_.emplace(stream, announce.id);
  if (MayStart(pull)) {
    Start(announce.id);
  } else {
    deferred_.insert(announce.id);
  }
  return absl::OkStatus();
}

bool MessageReader::LoadInPlace(uint32_t stream,
                                const wire::Announce& announce) {
  if (fast_path_ == nullptr || !fast_path_->capabilities().can_load) {
    return false;
  }
  const wire::AnnouncedRegion* region = FindFast(announce);
  if (region == nullptr || !load_in_place_) return false;
  absl::StatusOr<memory::Payload> message = fast_path_->Load(ToRemote(*region));
  if (!message.ok()) return false;
  owner_->OnRegionReleased(stream, announce.id, IsSmall(announce));
  owner_->OnMessageRead(stream, announce.id, std::move(message), 0);
  return true;
}

bool MessageReader::MayStart(const Pull& pull) const {
  return in_use_ == 0 ||
         (in_use_ <= budget_ && pull.announce.length <= budget_ - in_use_);
}

const wire::AnnouncedRegion* MessageReader::ChoosePath(Pull* pull) const {
  const bool may_be_fast = fast_path_ != nullptr && !pull->lifeline_only;
  for (bool fast : {true, false}) {
    if (fast && !may_be_fast) continue;
    const wire::AnnouncedRegion* region =
        FindRegion(pull->announce, fast ? fast_epoch_ : kLifeline);
    if (region == nullptr) continue;
    pull->path = fast ? fast_path_ : lifeline_;
    return region;
  }
  return nullptr;
}

void MessageReader::Start(uint64_t id) {
  Pull& pull = pulls_[id];
  const wire::AnnouncedRegion* const region = ChoosePath(&pull);
  if (region == nullptr) {
    return Fail(id, absl::UnavailableError("no path leads to the message"));
  }
  absl::StatusOr<std::unique_ptr<Landing>> landing =
      Landing::Choose(ToRemote(*region), pull.destinations, pull.path);
  if (!landing.ok()) return Fail(id, landing.status());
  pull.landing = *std::move(landing);
  in_use_ += pull.announce.length;
  const fabric::Capabilities& path = pull.path->capabilities();
  protocol::ChunkTuner* const tuner = TunerOf(pull);
  under_way_.insert(id);
  pull.puller = std::make_unique<protocol::Puller>(
      pull.landing->lengths(), tuner->chunk_bytes(), path.max_reads,
      path.push_bytes);
  if (!tuner->idle()) {
    tuner->BeginBehindOthers();
  } else if (tuner->adapts()) {
    tuner->Begin(tuning_.now_ns());
  }
  StartReads(id, pull.puller->Start());
}

void MessageReader::StartReads(
    uint64_t id, const std::vector<protocol::Puller::Chunk>& reads) {
  auto it = pulls_.find(id);
  if (it == pulls_.end()) return;
  std::deque<protocol::Puller::Chunk>& to_start = it->second.to_start;
  to_start.insert(to_start.end(), reads.begin(), reads.end());
  // Leaves the next read to the loop that started this read. A read may end
  // within Read(), and cause the next read or the end of the message. With a
  // loop, the stack's depth does not grow with the number of pieces.
  if (std::exchange(it->second.starting, true)) return;
  for (; it != pulls_.end(); it = pulls_.find(id)) {
    Pull& pull = it->second;
    if (pull.to_start.empty()) {
      pull.starting = false;
      return;
    }
    const protocol::Puller::Chunk chunk = pull.to_start.front();
    pull.to_start.pop_front();
    protocol::ChunkTuner* const tuner = TunerOf(pull);
    tuner->OnRead(chunk.length, tuner->wants_start() ? tuning_.now_ns() : 0);
    const Landing& landing = *pull.landing;
    pull.path->Read(landing.parts()[chunk.part], chunk.part_offset,
                    landing.At(chunk.part, chunk.part_offset, chunk.length),
                    id);
  }
}

void MessageReader::OnReadDone(uint64_t id, const absl::Status& status) {
  auto it = pulls_.find(id);
  if (it == pulls_.end()) return;
  protocol::ChunkTuner* const tuner = TunerOf(it->second);
  tuner->OnReadDone(status.ok(), tuner->wants_end() ? tuning_.now_ns() : 0);
  protocol::Puller* puller = it->second.puller.get();
  StartReads(id, puller->OnReadDone(status));
  it = pulls_.find(id);
  if (it != pulls_.end() && it->second.puller->finished()) Finish(id);
}

void MessageReader::Finish(uint64_t id) {
  Pull& pull = pulls_[id];
  if (pull.puller->state() == protocol::Puller::State::kFailed) {
    const absl::Status error = pull.puller->error();
    // Reads the same bytes over the lifeline, because the path may have been
    // lost.
    if (pull.wanted && pull.path != lifeline_) {
      pull.lifeline_only = true;
      pull.landing = nullptr;  // no more reads are under way
      in_use_ -= pull.announce.length;
      return Start(id);
    }
    return Fail(id, error);
  }
  const Pull done = Take(id);
  GiveBack(done.announce);
  // Lets the release wait only on a path that pushes. On other paths, the
  // sender measures the time until the release, to tune its eager limit.
  const bool is_pushed = done.path->capabilities().push_bytes > 0;
  owner_->OnRegionReleased(done.stream, id,
                           is_pushed && IsSmall(done.announce));
  owner_->OnMessageRead(done.stream, id, done.landing->Message(),
                        done.announce.length);
}

MessageReader::Pull MessageReader::Take(uint64_t id) {
  auto it = pulls_.find(id);
  Pull pull = std::move(it->second);
  pulls_.erase(it);
  pending_parts_ -= pull.announce.max_parts();
  of_streams_.erase({pull.stream, id});
  under_way_.erase(id);
  deferred_.erase(id);
  wanted_.erase(id);
  return pull;
}

void MessageReader::Fail(uint64_t id, const absl::Status& status) {
  const Pull pull = Take(id);
  GiveBack(pull.announce);
  owner_->OnRegionReleased(pull.stream, id, /*may_wait=*/false);
  if (pull.landing != nullptr) {
    if (!pull.wanted) abandoned_ -= pull.announce.length;
    Consumed(pull.announce.length);
  }
  if (pull.wanted) owner_->OnMessageRead(pull.stream, id, status, 0);
}

void MessageReader::Want(uint64_t id) {
  if (deferred_.erase(id) == 0) return;
  if (MayStartWanted()) return Start(id);
  wanted_.insert(id);
}

void MessageReader::Abandon(uint32_t stream) {
  std::vector<uint64_t> ids;
  for (auto it = of_streams_.lower_bound({stream, 0});
       it != of_streams_.end() && it->first == stream; ++it) {
    ids.push_back(it->second);
  }
  // Prevents deferred reads from starting meanwhile. Otherwise abandoned reads
  // could start in the room that other abandoned reads free.
  const bool starting = std::exchange(starting_deferred_, true);
  for (uint64_t id : ids) AbandonPull(id);
  starting_deferred_ = starting;
  StartDeferred();
}

void MessageReader::AbandonPull(uint64_t id) {
  auto it = pulls_.find(id);
  if (it == pulls_.end() || !it->second.wanted) return;
  Pull& pull = it->second;
  pull.wanted = false;
  if (pull.landing != nullptr) abandoned_ += pull.announce.length;
  if (pull.puller != nullptr) {
    pull.puller->Abandon();
    FreeDestinations(id, &pull);
  }
  if (pull.puller == nullptr || pull.puller->finished()) {
    Fail(id, absl::CancelledError("the stream ended"));
  }
}

void MessageReader::FreeDestinations(uint64_t id, Pull* pull) {
  pull->destinations = nullptr;
  if (pull->landing == nullptr || !pull->landing->uses_destinations()) return;
  // Keeps the destinations while StartReads() still starts reads into them.
  if (pull->starting || !pull->path->Divert(id)) return;
  pull->landing->LeaveDestinations();
}

void MessageReader::Consumed(uint64_t bytes) {
  in_use_ -= std::min(in_use_, bytes);
  StartDeferred();
}

void MessageReader::StartDeferred() {
  // Leaves the next read to the loop that is running. A read may fail when it
  // starts, and cause the next read to start. With a loop, the stack's depth
  // does not grow with the number of announcements.
  if (starting_deferred_) return;
  starting_deferred_ = true;
  while (!wanted_.empty() && MayStartWanted()) {
    const uint64_t id = *wanted_.begin();
    wanted_.erase(wanted_.begin());
    Start(id);
  }
  while (!deferred_.empty() && MayStart(pulls_[*deferred_.begin()])) {
    const uint64_t id = *deferred_.begin();
    deferred_.erase(deferred_.begin());
    Start(id);
  }
  starting_deferred_ = false;
}

void MessageReader::GiveBack(const wire::Announce& announce) {
  const wire::AnnouncedRegion* region = FindFast(announce);
  if (region != nullptr) fast_path_->GiveBack(ToRemote(*region));
}

void MessageReader::Discard(const wire::Announce& announce) {
  GiveBack(announce);
  owner_->OnRegionReleased(0, announce.id, /*may_wait=*/false);
}

}  // namespace session
}  // namespace penstock
