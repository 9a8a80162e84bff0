#include "ps/cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace penstock::ps {
namespace {

std::string Config(const std::string& cluster, const std::string& task) {
  return R"({"cluster": )" + cluster + R"(, "task": )" + task + "}";
}

constexpr char kCluster[] =
    R"({"ps": ["p0:1", "p1:1"], "chief": ["c:1"], "worker": ["w0:1", "w1:1"],
        "evaluator": ["e:1"]})";

void ExpectNames(const absl::StatusOr<Cluster>& cluster,
                 absl::string_view field) {
  ASSERT_FALSE(cluster.ok());
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(cluster.status().message().find(field), absl::string_view::npos)
      << cluster.status();
}

TEST(ClusterTest, ChiefIsWorkerZero) {
  auto chief = ParseTfConfig(Config(kCluster, R"({"type": "chief"})"));
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_EQ(chief->role, Role::kWorker);
  EXPECT_EQ(chief->index, 0u);
  EXPECT_EQ(chief->workers, (std::vector<std::string>{"c:1", "w0:1", "w1:1"}));
  auto worker =
      ParseTfConfig(Config(kCluster, R"({"type": "worker", "index": 1})"));
  EXPECT_EQ(worker->index, 2u);
}

TEST(ClusterTest, WithoutAChiefWorkerZeroIsFirst) {
  auto worker = ParseTfConfig(Config(R"({"ps": ["p:1"], "worker": ["w:1"]})",
                                     R"({"type": "worker", "index": 0})"));
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->index, 0u);
}

TEST(ClusterTest, EvaluatorStaysOutsideTheWorkers) {
  auto evaluator =
      ParseTfConfig(Config(kCluster, R"({"type": "evaluator", "index": 0})"));
  ASSERT_TRUE(evaluator.ok());
  EXPECT_EQ(evaluator->role, Role::kEvaluator);
  EXPECT_EQ(evaluator->workers.size(), 3u);
  EXPECT_EQ(evaluator->peers().size(), 1u);
}

TEST(ClusterTest, ErrorsNameTheField) {
  ExpectNames(ParseTfConfig("{"), "TF_CONFIG");
  ExpectNames(ParseTfConfig("[]"), "TF_CONFIG");
  ExpectNames(ParseTfConfig("{}"), "cluster");
  ExpectNames(ParseTfConfig(R"({"cluster": {"ps": ["p"]}})"), "task");
  ExpectNames(ParseTfConfig(Config(kCluster, "{}")), "task.type");
  ExpectNames(ParseTfConfig(Config(kCluster, R"({"type": "boss"})")),
              "task.type");
  ExpectNames(ParseTfConfig(Config(kCluster, R"({"type": "ps", "index": 2})")),
              "task.index");
  ExpectNames(ParseTfConfig(Config(kCluster, R"({"type": "ps", "index": -1})")),
              "task.index");
  ExpectNames(
      ParseTfConfig(Config(kCluster, R"({"type": "ps", "index": "0"})")),
      "task.index");
  ExpectNames(ParseTfConfig(Config(R"({"ps": "p:1"})", R"({"type": "ps"})")),
              "cluster.ps");
  ExpectNames(ParseTfConfig(Config(R"({"ps": [1]})", R"({"type": "ps"})")),
              "cluster.ps[0]");
  ExpectNames(ParseTfConfig(Config(R"({"master": 1})", R"({"type": "ps"})")),
              "cluster.master");
  ExpectNames(ParseTfConfig(Config(R"({"cook": []})", R"({"type": "ps"})")),
              "cluster.cook");
  ExpectNames(
      ParseTfConfig(Config(R"({"worker": ["w"]})", R"({"type": "worker"})")),
      "cluster.ps");
}

TEST(ClusterTest, EnvironmentMayLackIt) {
  unsetenv("TF_CONFIG");
  EXPECT_EQ(ClusterFromEnvironment().status().code(),
            absl::StatusCode::kNotFound);
  setenv("TF_CONFIG", "", 1);
  EXPECT_EQ(ClusterFromEnvironment().status().code(),
            absl::StatusCode::kNotFound);
  setenv("TF_CONFIG", Config(kCluster, R"({"type": "ps", "index": 1})").c_str(),
         1);
  auto server = ClusterFromEnvironment();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->role, Role::kServer);
  EXPECT_EQ(server->peers()[server->index], "p1:1");
}

}  // namespace
}  // namespace penstock::ps
