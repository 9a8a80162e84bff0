#include "bench/rpc/setup/options.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/rpc/message/cell.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<CommandLine> Parse(std::vector<std::string> flags) {
  std::vector<const char*> arguments = {"rpc"};
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

RunOptions ParseGood(const std::vector<std::string>& flags) {
  const auto command = Parse(flags);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.ok() ? command->options : RunOptions();
}

std::string ErrorOf(const std::vector<std::string>& flags) {
  const auto command = Parse(flags);
  EXPECT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(command.status().message());
}

TEST(OptionsTest, DefaultsMeasureEverything) {
  const RunOptions options = ParseGood({});
  EXPECT_THAT(options.benchmarks, ElementsAre(Benchmark::kLatency));
  EXPECT_EQ(options.transports, DefaultTransports());
  EXPECT_FALSE(options.transports_named);
  EXPECT_EQ(options.apis, AllApis());
  EXPECT_THAT(options.sizes, ElementsAre(8, 65536, 1048576));
}

TEST(OptionsTest, ListsKeepTheirOrder) {
  const RunOptions options =
      ParseGood({"--benchmark=stream,bandwidth", "--transports=shm,tcp",
                 "--api=callback,sync", "--sizes=1MiB,8,64KiB"});
  EXPECT_THAT(options.benchmarks,
              ElementsAre(Benchmark::kStream, Benchmark::kBandwidth));
  EXPECT_THAT(options.transports,
              ElementsAre(Transport::kShm, Transport::kTcp));
  EXPECT_TRUE(options.transports_named);
  EXPECT_THAT(options.apis, ElementsAre(Api::kCallback, Api::kSync));
  EXPECT_THAT(options.sizes, ElementsAre(1048576, 8, 65536));
}

TEST(OptionsTest, NumbersOfClientsAreAList) {
  EXPECT_THAT(ParseGood({}).workers, ElementsAre(2));
  EXPECT_THAT(ParseGood({"--workers=4"}).workers, ElementsAre(4));
  EXPECT_THAT(ParseGood({"--workers=1,16,2"}).workers, ElementsAre(1, 16, 2));
  for (const char* bad :
       {"--workers=1,0", "--workers=2,2", "--workers=65", "--workers=1,many"}) {
    EXPECT_THAT(ErrorOf({bad}), HasSubstr("--workers")) << bad;
  }
}

TEST(OptionsTest, QuickYieldsToExplicitNumbers) {
  EXPECT_LT(ParseGood({"--quick"}).seconds, RunOptions().seconds);
  EXPECT_EQ(ParseGood({"--quick", "--seconds=2"}).seconds, 2);
  EXPECT_EQ(ParseGood({"--quick", "--rounds=9"}).rounds, 9);
}

TEST(OptionsTest, IdleHasManyChannels) {
  EXPECT_EQ(ParseGood({}).channels, 1);
  EXPECT_EQ(ParseGood({"--benchmark=latency,idle"}).channels, 100);
  EXPECT_EQ(ParseGood({"--benchmark=idle", "--channels=2"}).channels, 2);
  EXPECT_THAT(ErrorOf({"--benchmark=idle", "--channels=1"}),
              HasSubstr("--channels: 1 is not between 2"));
}

TEST(OptionsTest, MessagesHaveAForm) {
  EXPECT_EQ(ParseGood({}).message, MessageForm::kRaw);
  EXPECT_EQ(ParseGood({"--message=protobuf"}).message, MessageForm::kProtobuf);
  EXPECT_EQ(ParseGood({"--message=tensor", "--benchmark=beside"}).message,
            MessageForm::kTensor);
  EXPECT_THAT(ErrorOf({"--message=json"}),
              HasSubstr("\"json\" is no form of messages; there are raw"));
  for (const char* benchmark : {"stream", "resend", "handover"}) {
    EXPECT_THAT(ErrorOf({std::string("--benchmark=") + benchmark,
                         "--message=protobuf"}),
                HasSubstr("raw messages only"));
  }
}

TEST(OptionsTest, MessagesLieOnTheHostOrADevice) {
  EXPECT_FALSE(ParseGood({}).on_device);
  EXPECT_FALSE(ParseGood({"--memory=host"}).on_device);
  const RunOptions options =
      ParseGood({"--memory=device", "--benchmark=latency,resend"});
  EXPECT_TRUE(options.on_device);
  for (const auto& flags : {ServerFlags(options, Transport::kShm, Api::kSync),
                            ClientFlags(options, Benchmark::kLatency,
                                        Transport::kShm, Api::kSync)}) {
    EXPECT_THAT(flags, testing::Contains("--memory=device"));
  }
  EXPECT_THAT(ErrorOf({"--memory=gpu"}), HasSubstr("--memory"));
  for (const char* flag : {"--benchmark=handover", "--message=protobuf"}) {
    EXPECT_THAT(ErrorOf({"--memory=device", flag}), HasSubstr("not with"));
  }
}

TEST(OptionsTest, WrongValuesAreNamed) {
  EXPECT_THAT(ErrorOf({"--transports=tcp,infiniband"}),
              HasSubstr("\"infiniband\" is no transport; there are tcp"));
  EXPECT_THAT(ErrorOf({"--api=rest"}), HasSubstr("\"rest\" is no API"));
  EXPECT_THAT(ErrorOf({"--benchmark=speed"}), HasSubstr("\"speed\""));
  EXPECT_THAT(ErrorOf({"--sizes=8,lots"}), HasSubstr("\"lots\" is no size"));
  EXPECT_THAT(ErrorOf({"--sizes=8,8B"}), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf({"--sizes="}), HasSubstr("--sizes"));
  EXPECT_THAT(ErrorOf({"--transports=tcp,"}), HasSubstr("\"\""));
}

TEST(OptionsTest, NumbersOutOfRangeAreRejected) {
  for (const char* flag :
       {"--rounds=0", "--rounds=-1", "--rounds=x", "--seconds=0",
        "--seconds=nan", "--seconds=-3", "--rpcs=0", "--rpcs=1e3x",
        "--channels=0", "--channels=2000", "--threads=0", "--threads=1000",
        "--window=0", "--warm-up=-1", "--json="}) {
    EXPECT_FALSE(Parse({flag}).ok()) << flag;
  }
}

TEST(OptionsTest, RpcsAndSecondsExcludeEachOther) {
  EXPECT_FALSE(Parse({"--rpcs=5", "--seconds=1"}).ok());
  EXPECT_EQ(ParseGood({"--rpcs=5", "--quick"}).rpcs, 5);
}

TEST(OptionsTest, UnknownFlagsAndWordsAreRejected) {
  EXPECT_FALSE(Parse({"--fast"}).ok());
  EXPECT_FALSE(Parse({"tcp"}).ok());
}

TEST(OptionsTest, HelpHidesTheChildrensFlags) {
  const auto command = Parse({"--help"});
  ASSERT_TRUE(command.ok());
  ASSERT_TRUE(command->help.has_value());
  EXPECT_THAT(*command->help, HasSubstr("--transports"));
  EXPECT_THAT(*command->help, Not(HasSubstr("role")));
}

TEST(OptionsTest, ChildrensFlagsComeBackUnchanged) {
  RunOptions options;
  options.threads = 3;
  options.address = "10.9.0.2";
  options.server_device = "rxe1";
  options.message = MessageForm::kTensor;
  options.client_device = "rxe0";
  const RunOptions server =
      ParseGood(ServerFlags(options, Transport::kShm, Api::kAsync));
  EXPECT_TRUE(server.server_role);
  EXPECT_EQ(server.message, MessageForm::kTensor);
  EXPECT_THAT(server.transports, ElementsAre(Transport::kShm));
  EXPECT_THAT(server.apis, ElementsAre(Api::kAsync));
  EXPECT_EQ(server.threads, 3);
  EXPECT_EQ(server.address, "10.9.0.2");
  EXPECT_EQ(server.server_device, "rxe1");

  options.seconds = 0.125;
  options.window = 7;
  options.warm_up = 9;
  options.channels = 5;
  const RunOptions client = ParseGood(ClientFlags(
      options, Benchmark::kBeside, Transport::kUds, Api::kCallback));
  EXPECT_TRUE(client.client_role);
  EXPECT_THAT(client.benchmarks, ElementsAre(Benchmark::kBeside));
  EXPECT_EQ(client.message, MessageForm::kTensor);
  EXPECT_EQ(client.sizes, options.sizes);
  EXPECT_EQ(client.seconds, 0.125);
  EXPECT_EQ(client.window, 7);
  EXPECT_EQ(client.warm_up, 9);
  EXPECT_EQ(client.channels, 5);
  EXPECT_EQ(client.threads, 3);
  EXPECT_EQ(client.address, "10.9.0.2");
  EXPECT_EQ(client.server_device, "rxe1");
  EXPECT_EQ(client.client_device, "rxe0");

  options.rpcs = 12;
  EXPECT_EQ(ParseGood(ClientFlags(options, Benchmark::kLatency, Transport::kTcp,
                                  Api::kSync))
                .rpcs,
            12);
}

TEST(OptionsTest, ARoleHasOneTransport) {
  EXPECT_FALSE(Parse({"--server-role", "--api=sync"}).ok());
  EXPECT_FALSE(Parse({"--client-role", "--transports=tcp"}).ok());
}

TEST(SizeTest, SuffixesMultiply) {
  EXPECT_EQ(*ParseSize("8"), 8u);
  EXPECT_EQ(*ParseSize("9B"), 9u);
  EXPECT_EQ(*ParseSize("64KiB"), 65536u);
  EXPECT_EQ(*ParseSize("1MiB"), 1048576u);
  EXPECT_EQ(*ParseSize("1GiB"), 1073741824u);
  EXPECT_EQ(*ParseSize("2kB"), 2000u);
  EXPECT_EQ(*ParseSize("2MB"), 2000000u);
  EXPECT_EQ(*ParseSize("1GB"), 1000000000u);
}

TEST(SizeTest, NonsenseAndExtremesAreRejected) {
  for (const char* text :
       {"", "KiB", "0", "7", "-8", "1.5MiB", "8 ", " 8", "8kib", "2GiB",
        "99999999999999999999", "18446744073709551615GiB"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << '"' << text << '"';
  }
}

TEST(SizeTest, FormattingPicksTheLargestWholeUnit) {
  EXPECT_EQ(FormatSize(8), "8");
  EXPECT_EQ(FormatSize(65536), "64KiB");
  EXPECT_EQ(FormatSize(1048576), "1MiB");
  EXPECT_EQ(FormatSize(1048577), "1048577");
  EXPECT_EQ(FormatSize(size_t{1} << 30), "1GiB");
}

TEST(NameTest, EveryNameIsParsedBack) {
  for (Benchmark value : AllBenchmarks()) {
    EXPECT_EQ(*ParseBenchmark(Name(value)), value);
  }
  for (Api value : AllApis()) EXPECT_EQ(*ParseApi(Name(value)), value);
  for (Transport value : AllTransports()) {
    EXPECT_EQ(*ParseTransport(Name(value)), value);
  }
}

}  // namespace
}  // namespace bench
}  // namespace penstock
