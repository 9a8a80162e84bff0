#include "frameworks/tensorflow/exports.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "frameworks/tensorflow/lent_tensor.h"
#include "frameworks/tensorflow/registered_memory.h"
#include "frameworks/tensorflow/server.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace tensorflow {
namespace {

using nlohmann::json;

json ToJson(const session::Counters& counters) {
  return {{"bytes_sent", counters.bytes_sent()},
          {"bytes_received", counters.bytes_received()}};
}

json ToJson(const Route::Description& route) {
  json result = {{"address", route.target}, {"path", route.path},
                 {"detail", route.detail},  {"reason", route.reason},
                 {"calls", route.calls},    {"grpc_calls", route.stock_calls}};
  result.update(ToJson(route.counters));
  return result;
}

json ToJson(const rpc::Server::Description& peer) {
  json result = {{"address", peer.peer},
                 {"path", peer.path.fabric},
                 {"detail", peer.path.detail},
                 {"reason", peer.path.reason}};
  result.update(ToJson(peer.counters));
  return result;
}

json ToJson(const std::map<std::string, Team::Description>& teams) {
  json result = json::array();
  for (const auto& [name, team] : teams) {
    result.push_back({{"name", name},
                      {"state", team.state},
                      {"reason", team.reason},
                      {"reductions", team.reductions},
                      {"waiting", team.waiting}});
  }
  return result;
}

json Describe() {
  json servers = json::array();
  Server::ForEach([&servers](const Server& server) {
    json routes = json::array();
    for (const auto& route : server.DescribeRoutes()) {
      routes.push_back(ToJson(route));
    }
    json peers = json::array();
    for (const auto& peer : server.DescribePeers()) {
      peers.push_back(ToJson(peer));
    }
    servers.push_back({{"task", server.task()},
                       {"routes", routes},
                       {"peers", peers},
                       {"teams", ToJson(server.DescribeTeams())}});
  });
  return {{"servers", servers},
          {"held_bytes", HeldBytes()},
          {"registered_bytes", RegisteredBytes()}};
}

}  // namespace
}  // namespace tensorflow
}  // namespace penstock

char* penstock_tensorflow_describe() {
  // Replaces invalid UTF-8, which a text from a peer may contain.
  const std::string text = penstock::tensorflow::Describe().dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  return strdup(text.c_str());
}

void penstock_tensorflow_free(char* text) { free(text); }

const char* penstock_tensorflow_built_for() {
  return PENSTOCK_TENSORFLOW_RELEASE;
}
