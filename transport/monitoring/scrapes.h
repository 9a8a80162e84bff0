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

// Bounds the connections of one port, and answers those who have asked. Never
// destroyed, as its loop is not. Lives on the loop's thread.
//
//   stage     a connection that            above its limit
//   asking    has an incomplete head       the oldest of the host with most
//   goes asked     waits for the text           no other one is accepted
//   reading   is slow to take the answer   the oldest of the host with most
//   goes
class Scrapes {
 public:
  // Returns the text of the metrics. Called on a thread of Aside::kStatus, once
  // for all who ask while it runs.
  using Collect = std::function<std::string()>;

  Scrapes(progress::EventLoop* loop, Collect collect);

  // Serves an accepted connection. Takes ownership of the socket.
  void Begin(base::UniqueFd socket, const sockaddr_storage& peer);
  // Drops a connection that is slow with its head, or else with its answer.
  // Returns false if there is none.
  bool MakeRoom();
  // Returns whether so many wait for the text that others have to wait until
  // they can be accepted.
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
  // Returns the place of the connection that is next to go, or null.
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
  Id last_collected_for_ = 0;  // of asked_; later ones wait for the next text
};

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_SCRAPES_H_
