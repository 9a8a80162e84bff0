// The connections to the port of the metrics.

#ifndef PENSTOCK_TRANSPORT_MONITORING_SCRAPES_H_
#define PENSTOCK_TRANSPORT_MONITORING_SCRAPES_H_

#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "transport/base/unique_fd.h"
#include "transport/monitoring/scrape.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/half_open_table.h"

namespace penstock {
namespace monitoring {

// Limits the connections of one port, and answers the clients. Never destroyed,
// because the event loop is never destroyed. Used on the loop's thread.
//
//   stage     a connection that            above its limit
//   asking    has an incomplete head       drops the oldest of the host with
//                                          the most
//   asked     waits for the text           accepts no other connection
//   reading   is slow to take the answer   drops the oldest of the host with
//                                          the most
class Scrapes {
 public:
  // Returns the text of the metrics. May block, and therefore runs on the
  // background thread Aside::kStatus. One call answers all clients that have
  // asked before the call begins.
  using Collect = std::function<std::string()>;

  Scrapes(progress::EventLoop* loop, Collect collect);

  // Serves an accepted connection. Takes ownership of the socket.
  void Begin(base::UniqueFd socket, const sockaddr_storage& peer);
  // Drops a connection that is slow to send its head, or else one that is slow
  // to read its answer. Returns false if there is neither.
  bool MakeRoom();
  // Returns true if so many clients wait for the text that no more connections
  // may be accepted.
  bool IsFull() const;

 private:
  using Id = progress::HalfOpenTable::Id;
  struct Stage;
  struct Place {
    std::shared_ptr<Scrape> scrape;  // null: over
    std::string host;
    Stage* stage = nullptr;
    Id id = 0;
  };
  struct Stage {
    progress::HalfOpenTable table;
    std::map<Id, std::shared_ptr<Place>> places;
  };

  static void Enter(Stage* stage, const std::shared_ptr<Place>& place);
  static void Leave(Place* place);
  // Returns the entry of the connection to drop next, or null.
  static std::shared_ptr<Place> NextOf(const Stage& stage);
  bool DropWhoIsAsking();
  bool DropWhoIsReading();
  void OnAsked(const std::shared_ptr<Place>& place);
  void CollectForAll();
  void OnCollected(const std::shared_ptr<const std::string>& text);
  void Answer(const std::shared_ptr<Place>& place,
              const std::shared_ptr<const std::string>& text);

  progress::EventLoop* const loop_;
  const Collect collect_;
  Stage asking_;
  Stage asked_;
  Stage reading_;
  bool is_collecting_ = false;
  Id last_collected_for_ = 0;  // of asked_; later clients wait for the next
                               // text
};

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_SCRAPES_H_
