#include "transport/settings/settings.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/progress/spin_policy.h"
#include "transport/settings/description.h"
#include "transport/settings/verbs_device.h"

namespace penstock {
namespace {

using Fabrics = std::vector<Fabric>;

// Removes all of the variables before each test.
class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() { Clear(); }
  ~SettingsTest() override { Clear(); }

  static void Clear() {
    for (const Description& each : DescribeSettings()) {
      unsetenv(each.variable.c_str());
    }
  }
  static void Set(const char* name, const char* value) {
    setenv(name, value, /*replace=*/1);
  }
  // Returns the text of an error; the status must not be OK.
  static std::string ErrorOf(const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  static std::string Error() { return ErrorOf(ResolveSettings({}).status()); }
};

TEST_F(SettingsTest, Defaults) {
  absl::StatusOr<Settings> settings = ResolveSettings({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->policy, Policy::kPrefer);
  EXPECT_EQ(settings->fabrics,
            (Fabrics{Fabric::kShm, Fabric::kVerbs, Fabric::kTcp}));
  EXPECT_EQ(*ResolvePolling(), progress::PollingMode::kAdaptive);
}

TEST_F(SettingsTest, ShmSharingFromCodeEnvironmentAndDefault) {
  EXPECT_EQ(ResolveSettings({})->shm_sharing, ShmSharing::kSameUid);
  Set("PENSTOCK_SHM_SHARING", "copy");
  EXPECT_EQ(ResolveSettings({})->shm_sharing, ShmSharing::kCopy);
  Options options;
  options.shm_sharing = ShmSharing::kOff;
  EXPECT_EQ(ResolveSettings(options)->shm_sharing, ShmSharing::kOff);
  Set("PENSTOCK_SHM_SHARING", "yes");
  EXPECT_EQ(Error(),
            "PENSTOCK_SHM_SHARING=yes is not a setting: use same-uid, copy or "
            "off");
}

TEST_F(SettingsTest, ShmDirectoryFromCodeEnvironmentAndDefault) {
  EXPECT_EQ(ResolveSettings({})->shm_directory, "");
  Set("PENSTOCK_SHM_DIRECTORY", "/shared");
  EXPECT_EQ(ResolveSettings({})->shm_directory, "/shared");
  Options options;
  options.shm_directory = "/other";
  EXPECT_EQ(ResolveSettings(options)->shm_directory, "/other");
  options.shm_directory = "";
  EXPECT_EQ(ResolveSettings(options)->shm_directory, "");
}

TEST_F(SettingsTest, ShmDirectoryIsAnAbsolutePathThatFitsASocket) {
  const std::string longest = "/" + std::string(64, 'd');
  Set("PENSTOCK_SHM_DIRECTORY", longest.c_str());
  EXPECT_EQ(ResolveSettings({})->shm_directory, longest);
  for (const std::string& bad :
       {std::string("shared"), longest + "d", std::string("/a\nb")}) {
    Set("PENSTOCK_SHM_DIRECTORY", bad.c_str());
    EXPECT_EQ(Error(), "PENSTOCK_SHM_DIRECTORY=" + bad +
                           " is not a setting: use an absolute path of at "
                           "most 65 bytes");
  }
}

TEST_F(SettingsTest, VerbsDeviceMayNameAPort) {
  EXPECT_EQ(ResolveSettings({})->verbs_device, "");
  Set("PENSTOCK_VERBS_DEVICE", "mlx5_0");
  EXPECT_EQ(ResolveSettings({})->verbs_device, "mlx5_0");
  Options options;
  options.verbs_device = "mlx5_1/2";
  EXPECT_EQ(ResolveSettings(options)->verbs_device, "mlx5_1/2");
  options.verbs_device = "";
  EXPECT_EQ(ResolveSettings(options)->verbs_device, "");
  options.verbs_device = "mlx5_1/0";
  EXPECT_FALSE(ResolveSettings(options).ok());
}

TEST_F(SettingsTest, VerbsDeviceHasANameAndAPort) {
  const struct {
    const char* text;
    const char* name;
    int port;
  } kDevices[] = {{"", "", 0}, {"mlx5_0", "mlx5_0", 0}, {"rxe0/2", "rxe0", 2}};
  for (const auto& row : kDevices) {
    const absl::optional<VerbsDevice> device = VerbsDevice::Parse(row.text);
    ASSERT_TRUE(device.has_value()) << row.text;
    EXPECT_EQ(device->name, row.name);
    EXPECT_EQ(device->port, row.port);
  }
}

TEST_F(SettingsTest, BadVerbsDeviceNamesTheVariableAndTheRemedy) {
  for (const char* value :
       {"/1", "mlx5_0/", "mlx5_0/0", "mlx5_0/256", "mlx5_0/1/1", "mlx5_0/x"}) {
    Set("PENSTOCK_VERBS_DEVICE", value);
    EXPECT_EQ(Error(), std::string("PENSTOCK_VERBS_DEVICE=") + value +
                           " is not a setting: use a device, with a port of it "
                           "or without: \"mlx5_0\", \"mlx5_0/1\"");
  }
}

TEST_F(SettingsTest, NumbersOfVerbsHaveRangesWhereverTheyComeFrom) {
  EXPECT_EQ(ResolveSettings({})->verbs_gid_index, -1);
  EXPECT_EQ(ResolveSettings({})->verbs_traffic_class, -1);
  Set("PENSTOCK_VERBS_GID_INDEX", "3");
  Set("PENSTOCK_VERBS_TRAFFIC_CLASS", "106");
  EXPECT_EQ(ResolveSettings({})->verbs_gid_index, 3);
  EXPECT_EQ(ResolveSettings({})->verbs_traffic_class, 106);
  Options options;
  options.verbs_gid_index = 256;
  EXPECT_EQ(ErrorOf(ResolveSettings(options).status()),
            "PENSTOCK_VERBS_GID_INDEX=256 is not a setting: use 0 to 255, or "
            "-1 for any");
  for (const char* value : {"x", "-2", "256", "1.5"}) {
    Set("PENSTOCK_VERBS_TRAFFIC_CLASS", value);
    EXPECT_EQ(Error(), std::string("PENSTOCK_VERBS_TRAFFIC_CLASS=") + value +
                           " is not a setting: use 0 to 255, or -1 for the "
                           "system's");
  }
}

TEST_F(SettingsTest, SizesFromCodeEnvironmentAndDefault) {
  EXPECT_EQ(ResolveSettings({})->eager_max_bytes, 0);
  EXPECT_EQ(ResolveSettings({})->chunk_bytes, 0);
  Set("PENSTOCK_EAGER_MAX", "1");
  Set("PENSTOCK_CHUNK", "1048576");
  EXPECT_EQ(ResolveSettings({})->eager_max_bytes, 1);
  EXPECT_EQ(ResolveSettings({})->chunk_bytes, 1048576);
  Options options;
  options.eager_max_bytes = 16352;
  options.chunk_bytes = 0;
  EXPECT_EQ(ResolveSettings(options)->eager_max_bytes, 16352);
  EXPECT_EQ(ResolveSettings(options)->chunk_bytes, 0);
}

TEST_F(SettingsTest, BadSizesNameTheVariableAndTheRange) {
  for (const char* value : {"x", "-1", "130817", "8KiB"}) {
    Set("PENSTOCK_EAGER_MAX", value);
    EXPECT_EQ(
        Error(),
        std::string("PENSTOCK_EAGER_MAX=") + value +
            " is not a setting: use 1 to 130816, or 0 for the measured size");
  }
  Set("PENSTOCK_EAGER_MAX", "0");
  for (const char* value : {"4095", "1048577"}) {
    Set("PENSTOCK_CHUNK", value);
    EXPECT_EQ(Error(), std::string("PENSTOCK_CHUNK=") + value +
                           " is not a setting: use 4096 to 1048576, or 0 for "
                           "the measured size");
  }
  Options options;
  options.chunk_bytes = 100;
  EXPECT_EQ(ErrorOf(ResolveSettings(options).status()),
            "PENSTOCK_CHUNK=100 is not a setting: use 4096 to 1048576, or 0 "
            "for the measured size");
}

TEST_F(SettingsTest, CacheOfVerbsHasItsRange) {
  EXPECT_EQ(ResolveSettings({})->verbs_cache_mib, 1024);
  Set("PENSTOCK_VERBS_CACHE_MIB", "0");
  EXPECT_EQ(ResolveSettings({})->verbs_cache_mib, 0);
  Options options;
  options.verbs_cache_mib = 1048576;
  EXPECT_EQ(ResolveSettings(options)->verbs_cache_mib, 1048576);
  options.verbs_cache_mib = -1;
  EXPECT_EQ(ErrorOf(ResolveSettings(options).status()),
            "PENSTOCK_VERBS_CACHE_MIB=-1 is not a setting: use 0 to 1048576");
  for (const char* value : {"-1", "1048577", "1 GiB"}) {
    Set("PENSTOCK_VERBS_CACHE_MIB", value);
    EXPECT_EQ(Error(), std::string("PENSTOCK_VERBS_CACHE_MIB=") + value +
                           " is not a setting: use 0 to 1048576");
  }
}

TEST_F(SettingsTest, DataProtectionIsRequiredUnlessSomebodySaysNone) {
  EXPECT_EQ(ResolveSettings({})->data_protection, DataProtection::kRequired);
  EXPECT_FALSE(ResolveSettings({})->MayExpose());
  Set("PENSTOCK_DATA_PROTECTION", "none");
  EXPECT_EQ(ResolveSettings({})->data_protection, DataProtection::kNone);
  EXPECT_TRUE(ResolveSettings({})->MayExpose());
  Set("PENSTOCK_FABRICS", "shm,tcp");
  EXPECT_FALSE(ResolveSettings({})->MayExpose());
  Set("PENSTOCK_DATA_PROTECTION", "off");
  EXPECT_EQ(Error(),
            "PENSTOCK_DATA_PROTECTION=off is not a setting: use required or "
            "none");
}

TEST_F(SettingsTest, FabricNamedTwiceIsRefused) {
  Set("PENSTOCK_FABRICS", "shm,tcp,shm");
  EXPECT_EQ(Error(),
            "the list of fabrics names shm twice: name each fabric once, best "
            "first");
}

TEST_F(SettingsTest, RequireIsKnownWhateverElseIsWrong) {
  Set("PENSTOCK_FABRICS", "nonsense");
  EXPECT_FALSE(Requires({}));
  Set("PENSTOCK_POLICY", "require");
  EXPECT_TRUE(Requires({}));
  Options options;
  options.policy = Policy::kPrefer;
  EXPECT_FALSE(Requires(options));
}

TEST_F(SettingsTest, EnvironmentGoesBeforeDefaults) {
  Set("PENSTOCK_POLICY", "require");
  Set("PENSTOCK_FABRICS", "tcp");
  absl::StatusOr<Settings> settings = ResolveSettings({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->policy, Policy::kRequire);
  EXPECT_EQ(settings->fabrics, Fabrics{Fabric::kTcp});
}

TEST_F(SettingsTest, CodeGoesBeforeEnvironment) {
  Set("PENSTOCK_POLICY", "require");
  Set("PENSTOCK_FABRICS", "tcp");
  Options options;
  options.policy = Policy::kOff;
  options.fabrics = Fabrics{Fabric::kShm};
  absl::StatusOr<Settings> settings = ResolveSettings(options);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->policy, Policy::kOff);
  EXPECT_EQ(settings->fabrics, Fabrics{Fabric::kShm});
}

TEST_F(SettingsTest, EachFieldIsResolvedByItself) {
  Set("PENSTOCK_POLICY", "off");
  Options options;
  options.fabrics = Fabrics{Fabric::kTcp, Fabric::kShm};
  absl::StatusOr<Settings> settings = ResolveSettings(options);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->policy, Policy::kOff);
  EXPECT_EQ(settings->fabrics, (Fabrics{Fabric::kTcp, Fabric::kShm}));
}

TEST_F(SettingsTest, BadVariableDoesNotMatterWhereCodeDecides) {
  Set("PENSTOCK_POLICY", "nonsense");
  Set("PENSTOCK_FABRICS", "nonsense");
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = Fabrics{Fabric::kTcp};
  EXPECT_TRUE(ResolveSettings(options).ok());
}

TEST_F(SettingsTest, EveryPolicyHasItsWord) {
  const struct {
    const char* word;
    Policy policy;
  } kWords[] = {{"require", Policy::kRequire},
                {"prefer", Policy::kPrefer},
                {"off", Policy::kOff}};
  for (const auto& row : kWords) {
    Set("PENSTOCK_POLICY", row.word);
    EXPECT_EQ(ResolveSettings({})->policy, row.policy);
  }
}

TEST_F(SettingsTest, BadPolicyNamesTheVariableAndTheRemedy) {
  for (const char* value : {"Require", "require ", "on", "shm"}) {
    Set("PENSTOCK_POLICY", value);
    EXPECT_EQ(Error(), std::string("PENSTOCK_POLICY=") + value +
                           " is not a setting: use require, prefer or off");
  }
}

TEST_F(SettingsTest, BadFabricsNameTheVariableAndTheRemedy) {
  for (const char* value :
       {",", "shm,", ",tcp", "verbs ", "shm tcp", "SHM", "rdma", "shm, tcp"}) {
    Set("PENSTOCK_FABRICS", value);
    EXPECT_EQ(Error(),
              std::string("PENSTOCK_FABRICS=") + value +
                  " is not a setting: use a list of shm, verbs and tcp, best "
                  "first: \"shm,verbs,tcp\"");
  }
}

TEST_F(SettingsTest, EmptyListInCodeNamesTheFieldAndTheRemedy) {
  Options options;
  options.fabrics = Fabrics();
  const std::string error = ErrorOf(ResolveSettings(options).status());
  EXPECT_TRUE(absl::StrContains(error, "Options::fabrics")) << error;
  EXPECT_TRUE(absl::StrContains(error, "name at least one fabric")) << error;
}

TEST_F(SettingsTest, EveryPollingModeHasItsWord) {
  const struct {
    const char* word;
    progress::PollingMode mode;
  } kWords[] = {{"adaptive", progress::PollingMode::kAdaptive},
                {"busy", progress::PollingMode::kBusy},
                {"event", progress::PollingMode::kEvent}};
  for (const auto& row : kWords) {
    Set("PENSTOCK_POLLING", row.word);
    EXPECT_EQ(*ResolvePolling(), row.mode);
  }
}

TEST_F(SettingsTest, BadPollingNamesTheVariableAndTheRemedy) {
  for (const char* value : {"spin", "Busy"}) {
    Set("PENSTOCK_POLLING", value);
    EXPECT_EQ(ErrorOf(ResolvePolling().status()),
              std::string("PENSTOCK_POLLING=") + value +
                  " is not a setting: use adaptive, busy or event");
  }
}

TEST_F(SettingsTest, ShmHugePagesFromEnvironmentAndDefault) {
  using fabric::shm::HugePages;
  EXPECT_EQ(*ResolveShmHugePages(), HugePages::kTransparent);
  const struct {
    const char* word;
    HugePages pages;
  } kWords[] = {{"off", HugePages::kOff},
                {"reserved", HugePages::kReserved},
                {"transparent", HugePages::kTransparent}};
  for (const auto& row : kWords) {
    Set("PENSTOCK_SHM_HUGE_PAGES", row.word);
    EXPECT_EQ(*ResolveShmHugePages(), row.pages);
  }
  for (const char* value : {"on", "Reserved"}) {
    Set("PENSTOCK_SHM_HUGE_PAGES", value);
    EXPECT_EQ(ErrorOf(ResolveShmHugePages().status()),
              std::string("PENSTOCK_SHM_HUGE_PAGES=") + value +
                  " is not a setting: use transparent, reserved or off");
  }
}

TEST_F(SettingsTest, FabricNamesAreThoseOfTheVariable) {
  for (Fabric fabric : {Fabric::kShm, Fabric::kTcp}) {
    Set("PENSTOCK_FABRICS", FabricName(fabric).c_str());
    EXPECT_EQ(ResolveSettings({})->fabrics, Fabrics{fabric});
  }
}

TEST_F(SettingsTest, AllowsWhatIsListed) {
  Settings settings;
  settings.fabrics = {Fabric::kShm};
  EXPECT_TRUE(settings.Allows("shm"));
  EXPECT_FALSE(settings.Allows("tcp"));
  EXPECT_FALSE(settings.Allows(""));
  EXPECT_FALSE(settings.Allows("unknown"));
}

TEST_F(SettingsTest, TextTellsSettingsApart) {
  std::vector<std::string> texts;
  for (Policy policy : {Policy::kRequire, Policy::kPrefer, Policy::kOff}) {
    for (const Fabrics& fabrics : {Fabrics{Fabric::kShm}, Fabrics{Fabric::kTcp},
                                   Fabrics{Fabric::kShm, Fabric::kTcp},
                                   Fabrics{Fabric::kTcp, Fabric::kShm}}) {
      Settings settings;
      settings.policy = policy;
      settings.fabrics = fabrics;
      for (const std::string& other : texts) {
        EXPECT_NE(settings.ToString(), other);
      }
      texts.push_back(settings.ToString());
    }
  }
  EXPECT_EQ(texts[2], "require shm,tcp");
  Settings settings;
  settings.eager_max_bytes = 100;
  settings.chunk_bytes = 5000;
  EXPECT_EQ(settings.ToString(),
            "prefer shm,verbs,tcp eager_max_bytes=100 chunk_bytes=5000");
  settings = Settings();
  settings.verbs_cache_mib = 5;
  EXPECT_EQ(settings.ToString(), "prefer shm,verbs,tcp verbs_cache_mib=5");
}

}  // namespace
}  // namespace penstock
