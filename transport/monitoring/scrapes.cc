#include "transport/monitoring/scrapes.h"

#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace monitoring {
namespace {

using progress::HalfOpenTable;

// Limit the connections in each stage: 64 in total, and 32 from one host.
// Honest scrapers are few. They ask every few seconds, and are answered within
// milliseconds.
constexpr HalfOpenTable::Limits kLimits = {64, 32};

HalfOpenTable NewTable() {
  return HalfOpenTable(HalfOpenTable::WithinDescriptors(kLimits));
}

}  // namespace

Scrapes::Scrapes(progress::EventLoop* loop, Collect collect)
    : loop_(loop),
      collect_(std::move(collect)),
      asking_{NewTable(), {}},
      asked_{NewTable(), {}},
      reading_{NewTable(), {}} {}

void Scrapes::Enter(Stage* stage, const std::shared_ptr<Place>& place) {
  place->stage = stage;
  place->id = stage->table.Add(place->host);
  stage->places[place->id] = place;
}

void Scrapes::Leave(Place* place) {
  place->stage->table.Remove(place->id);
  place->stage->places.erase(place->id);
}

std::shared_ptr<Scrapes::Place> Scrapes::NextOf(const Stage& stage) {
  const absl::optional<Id> next = stage.table.Next();
  return next.has_value() ? stage.places.at(*next) : nullptr;
}

void Scrapes::Begin(base::UniqueFd socket, const sockaddr_storage& peer) {
  auto place = std::make_shared<Place>();
  auto scrape = std::make_shared<Scrape>(
      loop_, std::move(socket),
      Scrape::Callbacks{[this, place] { OnAsked(place); },
                        [place] {
                          Leave(place.get());
                          place->scrape = nullptr;
                        }});
  place->scrape = scrape;
  place->host = progress::HostOf(peer);
  Enter(&asking_, place);
  scrape->Start();
  if (asking_.table.Excess().has_value()) DropWhoIsAsking();
}

bool Scrapes::MakeRoom() { return DropWhoIsAsking() || DropWhoIsReading(); }

bool Scrapes::IsFull() const {
  return asked_.table.size() >= asked_.table.limits().in_all;
}

// Drops the connection of the stage "asking" that must be dropped next. If its
// head has arrived meanwhile, answers it instead.
bool Scrapes::DropWhoIsAsking() {
  const std::shared_ptr<Place> place = NextOf(asking_);
  if (place == nullptr) return false;
  const std::shared_ptr<Scrape> scrape = place->scrape;
  scrape->ReadOrEnd();
  return true;
}

bool Scrapes::DropWhoIsReading() {
  const std::shared_ptr<Place> place = NextOf(reading_);
  if (place == nullptr) return false;
  Leave(place.get());
  std::exchange(place->scrape, nullptr)->End();
  return true;
}

void Scrapes::OnAsked(const std::shared_ptr<Place>& place) {
  Leave(place.get());
  Enter(&asked_, place);
  CollectForAll();
}

// Collects one text for all clients that wait now. A client that asks during a
// collection waits for the next collection, so that its text includes all
// earlier events.
void Scrapes::CollectForAll() {
  if (is_collecting_ || asked_.places.empty()) return;
  is_collecting_ = true;
  last_collected_for_ = asked_.places.rbegin()->first;
  progress::RunAside(progress::Aside::kStatus, [this] {
    auto text = std::make_shared<const std::string>(collect_());
    loop_->Post([this, text] { OnCollected(text); });
  });
}

void Scrapes::OnCollected(const std::shared_ptr<const std::string>& text) {
  is_collecting_ = false;
  std::vector<std::shared_ptr<Place>> places;
  for (const auto& each : asked_.places) {
    if (each.first <= last_collected_for_) places.push_back(each.second);
  }
  for (const std::shared_ptr<Place>& place : places) Answer(place, text);
  CollectForAll();
}

void Scrapes::Answer(const std::shared_ptr<Place>& place,
                     const std::shared_ptr<const std::string>& text) {
  const std::shared_ptr<Scrape> scrape = place->scrape;
  if (scrape == nullptr || !scrape->Answer(text)) return;
  Leave(place.get());
  Enter(&reading_, place);
  if (reading_.table.Excess().has_value()) DropWhoIsReading();
}

}  // namespace monitoring
}  // namespace penstock
