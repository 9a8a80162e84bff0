// Fetches announced messages. Uses a message directly in the peer's memory if
// the fabric allows. Otherwise reads the message in chunks, into the program's
// destinations or new memory. If a path is lost, starts again on the lifeline.

#ifndef PENSTOCK_TRANSPORT_SESSION_MESSAGE_READER_H_
#define PENSTOCK_TRANSPORT_SESSION_MESSAGE_READER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/protocol/chunk_tuner.h"
#include "transport/protocol/puller.h"
#include "transport/session/landing.h"
#include "transport/session/tuning.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {

// Reads announced messages. All reads share a budget, which counts the bytes
// that are being read or that the application has not consumed. A read that
// does not fit is deferred. A read of any size starts if nothing else is in
// use.
//
// The budget delays a message that the application waits for only while reads
// for ended streams exceed the budget: an honest peer soon answers those reads.
// Any other delay could last forever, because the application may not release
// the budget while it waits.
//
// A call takes a time logarithmic in the number of announced messages, for each
// message that it affects. For an abandoned message with destinations, it takes
// a time linear in the number of reads of the path. Not thread-safe.
class MessageReader {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Reports that message `id` of `stream` was read, or failed. Called once
    // for each Begin(), perhaps from within Begin(), unless Abandon() came
    // first. The user passes `budgeted` to Consumed() when the application has
    // taken the message.
    virtual void OnMessageRead(uint32_t stream, uint64_t id,
                               absl::StatusOr<memory::Payload> message,
                               uint64_t budgeted) = 0;
    // Reports that reads of the peer's message `id` have ended, so that the
    // peer may release it. The owner tells the peer immediately, or later if
    // `may_wait`.
    virtual void OnRegionReleased(uint32_t stream, uint64_t id,
                                  bool may_wait) = 0;
  };

  MessageReader(fabric::Endpoint* lifeline, uint64_t budget, bool load_in_place,
                Owner* owner, const Tuning& tuning = Tuning());

  // From now on reads over `path` the regions that announcements mark with
  // `epoch`.
  void UseFastPath(fabric::Endpoint* path, uint32_t epoch);
  // The memory that reads were filling.
  using Filled = std::vector<std::unique_ptr<Landing>>;
  // Restarts the fast path's reads on the lifeline. Returns the memory that
  // these reads were filling. Keep this memory until the path is destroyed.
  Filled LoseFastPath();
  // Starts no more reads, and reports nothing more. Call when the session is
  // over. Reads on the lifeline still end; reads on the fast path do not.
  // Returns the memory that reads on the fast path were filling, as
  // LoseFastPath() does.
  Filled Stop();

  // Reads the message, now or when the budget allows. Uses the `destinations`
  // that fit; `destinations` may be null. Returns INVALID_ARGUMENT if the peer
  // used an id twice.
  absl::Status Begin(
      uint32_t stream, const wire::Announce& announce,
      std::shared_ptr<memory::Destinations> destinations = nullptr);
  // Starts a deferred read for which the application waits. Ignores an unknown
  // message, or one that is being read.
  void Want(uint64_t id);
  // Returns the number of parts of messages that were begun and have neither
  // been read nor failed.
  size_t pending_parts() const { return pending_parts_; }
  // Drops the messages of a stream that no longer wants them.
  void Abandon(uint32_t stream);
  // Returns `bytes` to the budget. Call when the application has taken them.
  void Consumed(uint64_t bytes);
  // Releases a message that nobody wants, without reading it.
  void Discard(const wire::Announce& announce);

  void OnReadDone(uint64_t id, const absl::Status& status);

  // Returns the bytes of the budget in use.
  uint64_t in_use() const { return in_use_; }

  // Returns the current chunk size for reads over `path`.
  size_t chunk_bytes(const fabric::Endpoint* path) const {
    return (path == lifeline_ ? lifeline_tuner_ : fast_tuner_).chunk_bytes();
  }

 private:
  struct Pull {
    uint32_t stream;
    wire::Announce announce;
    std::shared_ptr<memory::Destinations> destinations;
    std::unique_ptr<Landing> landing;  // null: not counted in in_use_
    std::unique_ptr<protocol::Puller> puller;
    fabric::Endpoint* path = nullptr;
    bool lifeline_only = false;  // the fast path failed
    bool wanted = true;          // by its stream
    // The reads that a running StartReads() has yet to start.
    std::deque<protocol::Puller::Chunk> to_start;
    bool starting = false;
  };

  // Returns the announced region of the fast path or the lifeline, or null.
  const wire::AnnouncedRegion* FindRegion(const wire::Announce& announce,
                                          uint32_t path) const;
  // Returns the announced region on the fast path, or null.
  const wire::AnnouncedRegion* FindFast(const wire::Announce& announce) const;
  // Returns the region of a message to the fast path unread. Call if the
  // message was not loaded in place. Does nothing if the fast path is lost.
  void GiveBack(const wire::Announce& announce);
  bool LoadInPlace(uint32_t stream, const wire::Announce& announce);
  bool MayStart(const Pull& pull) const;
  bool MayStartWanted() const { return abandoned_ <= budget_; }
  void Start(uint64_t id);
  void AbandonPull(uint64_t id);
  // Frees the destinations of an abandoned message immediately, if the path can
  // divert the reads in flight.
  static void FreeDestinations(uint64_t id, Pull* pull);
  // Removes the pull of message `id` from all containers, and returns the pull.
  Pull Take(uint64_t id);
  // Chooses the path over which a message is read. Returns the announced region
  // on that path, or null.
  const wire::AnnouncedRegion* ChoosePath(Pull* pull) const;
  protocol::ChunkTuner MakeTuner(const fabric::Endpoint& path) const;
  protocol::ChunkTuner* TunerOf(const Pull& pull) {
    return pull.path == lifeline_ ? &lifeline_tuner_ : &fast_tuner_;
  }
  void StartReads(uint64_t id,
                  const std::vector<protocol::Puller::Chunk>& reads);
  void Finish(uint64_t id);
  void Fail(uint64_t id, const absl::Status& status);
  void StartDeferred();

  fabric::Endpoint* const lifeline_;
  fabric::Endpoint* fast_path_ = nullptr;
  uint32_t fast_epoch_ = 0;
  const uint64_t budget_;
  const bool load_in_place_;
  Owner* const owner_;
  const Tuning tuning_;
  protocol::ChunkTuner lifeline_tuner_;
  protocol::ChunkTuner fast_tuner_;
  size_t pending_parts_ = 0;  // of pulls_
  uint64_t in_use_ = 0;
  uint64_t abandoned_ = 0;  // of in_use_: being read for nobody
  std::map<uint64_t, Pull> pulls_;
  std::set<std::pair<uint32_t, uint64_t>> of_streams_;  // all of pulls_
  // The ids of the announced messages by state. Ids only increase, so these
  // sets are in order of arrival.
  std::set<uint64_t> under_way_;  // have a puller
  std::set<uint64_t> deferred_;   // wait for budget
  std::set<uint64_t> wanted_;     // the application waits for these
  bool starting_deferred_ = false;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_MESSAGE_READER_H_
