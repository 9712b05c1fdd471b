// SPDX-License-Identifier: MIT
// Plug-ins: what is loaded, what is refused and in which words, and what the host offers to them.
// TEST_PLUGINS is the directory of the plug-ins built from tests/plugins/.
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "check/check.h"
#include "layers/posix_ops.h"
#include "trace/record.h"

namespace feign {
namespace {

std::string test_plugin(const std::string& name) {
  return std::string(TEST_PLUGINS) + "/" + name + ".so";
}

// Why a shared object is refused; "" if it is not.
std::string refusal(const std::string& path) {
  Plugins plugins;
  auto opened = plugins.open(path);
  return opened ? "" : opened.error().text();
}

class ScratchDirectory : public ::testing::Test {
 protected:
  ScratchDirectory() { EXPECT_NE(mkdtemp(dir_.data()), nullptr); }
  ~ScratchDirectory() override { std::filesystem::remove_all(dir_); }
  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << bytes;
    return dir_ + "/" + name;
  }
  std::string dir_ = ::testing::TempDir() + "feign-plugin-XXXXXX";
};

using Load = ScratchDirectory;

TEST_F(Load, AGoodPluginGivesItsComponents) {
  Plugins plugins;

  auto opened = plugins.open(test_plugin("roles"));

  ASSERT_TRUE(opened) << opened.error().text();
  ASSERT_EQ(opened->size(), 3u);
  EXPECT_STREQ((*opened)[0].table->name, "roles");
  EXPECT_STREQ((*opened)[0].plugin->version, "1.0");
  EXPECT_FALSE((*opened)[0].short_form);
}

TEST_F(Load, WhatIsNotThereIsAnError) {
  EXPECT_EQ(refusal("/no/such.so"), "open plug-in /no/such.so: No such file or directory");
}

TEST_F(Load, ADirectoryIsRefused) {
  EXPECT_EQ(refusal(dir_), dir_ + ": is a directory, want a shared object");
}

TEST_F(Load, AnEmptyFileIsRefused) {
  const std::string path = write("empty.so", "");

  EXPECT_EQ(refusal(path), path + ": is empty, want a shared object");
}

TEST_F(Load, ATextFileIsRefused) {
  const std::string path = write("text.so", "this is a text and not a shared object at all\n");

  EXPECT_EQ(refusal(path), path + ": is no shared object");
}

TEST_F(Load, AnObjectOfAnotherMachineIsRefused) {
  std::ifstream in(test_plugin("sample"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (const size_t at : {size_t{EI_CLASS}, size_t{EI_DATA}, offsetof(Elf64_Ehdr, e_machine)}) {
    std::string other = whole;
    other[at] ^= 3;

    const std::string path = write("other.so", other);

    EXPECT_EQ(refusal(path), path + ": is no shared object for this kind of machine") << at;
  }
}

TEST_F(Load, APipeIsRefusedAndNotWaitedFor) {
  const std::string path = dir_ + "/pipe.so";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);

  EXPECT_EQ(refusal(path), path + ": is no file, want a shared object");
}

TEST_F(Load, AnObjectThatIsCutShortIsRefusedWhereverItIsCut) {
  std::ifstream in(test_plugin("sample"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(whole.size(), 4096u);
  for (size_t size = 1; size < 8192 && size < whole.size() / 2; size = size * 3 / 2 + 1) {
    const std::string path = write("cut" + std::to_string(size) + ".so", whole.substr(0, size));

    EXPECT_NE(refusal(path), "") << size;
  }
}

TEST_F(Load, AnUnreadableFileIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::string path = write("secret.so", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);

  EXPECT_EQ(refusal(path), "open plug-in " + path + ": Permission denied");
}

TEST_F(Load, AnObjectWithoutEntryIsRefused) {
  EXPECT_EQ(refusal(test_plugin("no-entry")),
            test_plugin("no-entry") +
                ": is no Feign plug-in: it exports neither feign_plugin_v1 nor init");
}

TEST_F(Load, ALaterMajorVersionIsRefusedWithBothNumbers) {
  EXPECT_EQ(refusal(test_plugin("later-major")),
            test_plugin("later-major") + ": needs plug-in ABI 2.3, this feign has 1.0");
}

TEST_F(Load, ALaterMinorVersionIsRefusedWithBothNumbers) {
  EXPECT_EQ(refusal(test_plugin("bad-later-minor")),
            test_plugin("bad-later-minor") + ": sample needs plug-in ABI 1.5, this feign has 1.0");
}

TEST_F(Load, AMissingCallbackIsNamed) {
  const std::string text = refusal(test_plugin("bad-no-process"));

  EXPECT_NE(text.find("modifier sample: feign_modifier"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("lacks process()")) << text;
}

TEST_F(Load, ABadOptionTableIsRefused) {
  EXPECT_NE(refusal(test_plugin("bad-option-past")).find("option \"pause\" ends at byte"),
            std::string::npos);
  EXPECT_NE(refusal(test_plugin("bad-bad-fallback")).find("choice=some: want reads|writes|both"),
            std::string::npos);
}

TEST_F(Load, ABadNameIsRefused) {
  EXPECT_NE(refusal(test_plugin("bad-bad-name")).find("\"Sample\", want [a-z][a-z0-9-]*"),
            std::string::npos);
}

// A good plug-in, of which each test breaks one field.
class BrokenPlugin : public ::testing::Test {
 protected:
  BrokenPlugin() {
    Plugins plugins;
    component_ = *plugins.open(test_plugin("sample"))->front().table;
    api_ = *static_cast<const feign_modifier*>(component_.api);
    component_.api = &api_;
  }
  std::string fault() {
    auto checked = check_plugin(plugin_, "it.so");
    return checked ? "" : checked.error().text();
  }
  feign_modifier api_;
  feign_component component_;
  const feign_component* components_[3] = {&component_, nullptr, nullptr};
  feign_plugin plugin_ = {sizeof(feign_plugin), FEIGN_ABI_MINOR, "it", "1", "MIT", components_};
};

TEST_F(BrokenPlugin, IsNotWithoutABreak) { EXPECT_EQ(fault(), ""); }
TEST_F(BrokenPlugin, IsTooShort) {
  plugin_.struct_size = 8;
  EXPECT_EQ(fault(), "it.so: struct_size of its feign_plugin is 8, want at least 40");
}
TEST_F(BrokenPlugin, IsTooLong) {
  plugin_.struct_size = 100000;
  EXPECT_EQ(fault(), "it.so: struct_size of its feign_plugin is 100000, want at most 4096");
}
TEST_F(BrokenPlugin, HasNoVersion) {
  plugin_.version = nullptr;
  EXPECT_EQ(fault(), "it.so: it has no version");
}
TEST_F(BrokenPlugin, HasNoLicense) {
  plugin_.license = "";
  EXPECT_EQ(fault(), "it.so: it has no license");
}
TEST_F(BrokenPlugin, HasNoName) {
  plugin_.name = nullptr;
  EXPECT_EQ(fault(), "it.so: the plug-in's name is null, want [a-z][a-z0-9-]*");
}
TEST_F(BrokenPlugin, HasNoComponents) {
  components_[0] = nullptr;
  EXPECT_EQ(fault(), "it.so: it has no components");
}
TEST_F(BrokenPlugin, HasAComponentTwice) {
  components_[1] = &component_;
  EXPECT_EQ(fault(), "it.so: has two components that are modifier sample");
}
TEST_F(BrokenPlugin, HasAComponentOfNoRole) {
  component_.role = FEIGN_PROVIDER | FEIGN_WRITER;
  EXPECT_NE(fault().find("role is 33, want one of"), std::string::npos) << fault();
}
TEST_F(BrokenPlugin, HasAComponentThatIsTooShort) {
  component_.struct_size = 4;
  EXPECT_NE(fault().find("it.so: component 1: struct_size of its feign_component is 4"),
            std::string::npos)
      << fault();
}
TEST_F(BrokenPlugin, HasNoSummary) {
  component_.summary = "";
  EXPECT_EQ(fault(), "it.so: modifier sample: it has no summary");
}
TEST_F(BrokenPlugin, HasNoApi) {
  component_.api = nullptr;
  EXPECT_EQ(fault(), "it.so: modifier sample: api is null");
}
TEST_F(BrokenPlugin, HasAnApiThatEndsBeforeItsCallbacks) {
  api_.struct_size = offsetof(feign_modifier, destroy);
  EXPECT_NE(fault().find("lacks destroy()"), std::string::npos) << fault();
}
TEST_F(BrokenPlugin, HasNoCallbacksAtAll) {
  api_.create = nullptr;
  api_.process = nullptr;
  api_.destroy = nullptr;
  EXPECT_NE(fault().find("lacks create(), process(), destroy()"), std::string::npos) << fault();
}
TEST_F(BrokenPlugin, LooksAheadTooFar) {
  api_.lookahead = UINT32_MAX;
  EXPECT_NE(fault().find("look-ahead of 4294967295"), std::string::npos) << fault();
}

// Plug-ins by name, from a directory of the test's own.
class Find : public ScratchDirectory {
 protected:
  Find() {
    std::filesystem::copy_file(test_plugin("sample"), dir_ + "/sample.so");
    std::filesystem::copy_file(test_plugin("roles"), dir_ + "/roles.so");
    setenv("FEIGN_PLUGIN_PATH", (":/no/such/directory:" + dir_).c_str(), 1);
  }
  ~Find() override { unsetenv("FEIGN_PLUGIN_PATH"); }
  Plugins plugins_;
};

TEST_F(Find, DirectoriesBeginWithTheVariable) {
  const auto directories = Plugins::directories();

  ASSERT_GE(directories.size(), 3u);
  EXPECT_EQ(directories[0], "/no/such/directory");
  EXPECT_EQ(directories[1], dir_);
}

TEST_F(Find, ANameIsAFileInTheDirectories) {
  auto found = plugins_.find("sample", FEIGN_MODIFIER);

  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->path, dir_ + "/sample.so");
}

TEST_F(Find, TheRoleTellsComponentsOfOneNameApart) {
  EXPECT_EQ(plugins_.find("roles", FEIGN_PROVIDER)->table->role, uint32_t{FEIGN_PROVIDER});
  EXPECT_EQ(plugins_.find("roles", FEIGN_WRITER | FEIGN_MODIFIER)->table->role,
            uint32_t{FEIGN_WRITER});
}

TEST_F(Find, AComponentOfAnotherFileIsFound) {
  auto found = plugins_.find("idle", FEIGN_REPLAYER);

  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->path, dir_ + "/roles.so");
}

TEST_F(Find, AnUnknownNameListsThoseThatWouldFitAndGuesses) {
  auto found = plugins_.find("sampel", FEIGN_MODIFIER);

  ASSERT_FALSE(found);
  const std::string& text = found.error().text();
  EXPECT_TRUE(text.starts_with("unknown plug-in \"sampel\": there are: ")) << text;
  EXPECT_EQ(text.find("idle"), std::string::npos) << text << ": a replayer cannot stand there";
  EXPECT_TRUE(text.ends_with("; did you mean sample?")) << text;
}

TEST_F(Find, AWrongRoleIsSaid) {
  auto found = plugins_.find("sample", FEIGN_PROVIDER);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(), "sample is a modifier, want a provider");
}

TEST_F(Find, APathWithSeveralThatWouldFitSaysWhich) {
  auto found = plugins_.find(dir_ + "/roles.so", FEIGN_WRITER | FEIGN_REPLAYER);

  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text().find("writer roles, replayer idle"), std::string::npos)
      << found.error().text();
}

TEST_F(Find, APathWithOneThatFitsIsEnough) {
  auto found = plugins_.find(dir_ + "/roles.so", FEIGN_REPLAYER);

  ASSERT_TRUE(found) << found.error().text();
  EXPECT_STREQ(found->table->name, "idle");
}

TEST_F(Find, AllIsSortedByRoleAndNameAndSaysWhatFailed) {
  write("broken.so", "no");
  std::vector<Error> failures;

  const auto all = plugins_.all(&failures);

  ASSERT_GE(all.size(), 4u);
  EXPECT_EQ(all[0].table->role, uint32_t{FEIGN_PROVIDER});
  ASSERT_GE(failures.size(), 1u);
  EXPECT_EQ(failures[0].text(), dir_ + "/broken.so: is no shared object");
}

TEST_F(Find, OneThatSaysItsRolesIsNotLoadedForOthers) {
  std::vector<Error> failures;
  const auto path_is = [&](const Component& c) { return c.path == dir_ + "/sample.so"; };

  const auto providers = plugins_.all(&failures, FEIGN_PROVIDER);

  EXPECT_TRUE(std::none_of(providers.begin(), providers.end(), path_is));
  EXPECT_EQ(dlopen((dir_ + "/sample.so").c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
  const auto modifiers = plugins_.all(&failures, FEIGN_MODIFIER | FEIGN_WRITER);
  EXPECT_TRUE(std::any_of(modifiers.begin(), modifiers.end(), path_is));
}

TEST_F(Find, RolesSaidThatAreNotThoseOfItsComponentsAreAnError) {
  auto found = plugins_.find(test_plugin("bad-wrong-roles"), FEIGN_MODIFIER);

  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text().find("FEIGN_ROLES() says provider, its components say modifier"),
            std::string::npos)
      << found.error().text();
}

TEST_F(Find, ABrokenFileOfTheNameIsThatError) {
  write("broken.so", "no");

  auto found = plugins_.find("broken", FEIGN_MODIFIER);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(), dir_ + "/broken.so: is no shared object");
}

// What a component is offered.
class Host : public ::testing::Test {
 protected:
  Host() {
    component_ = plugins_.open(test_plugin("sample"))->front();
    instance_ = std::move(*Instance::create(component_, {"sample", {}, ""}, tables_));
    host_ = &instance_->host();
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = -1;
    info.thread = 7;
    stream_ = host_->stream(host_, &info);
    record_.a.id = 10;
    record_.a.stream = stream_;
  }
  std::string failure() { return instance_->failure(FEIGN_ERR_PLUGIN).text(); }

  Plugins plugins_;
  Tables tables_;
  Component component_;
  std::unique_ptr<Instance> instance_;
  const feign_host* host_;
  uint32_t stream_;
  Record record_{};
};

TEST_F(Host, StringsHaveNumbers) {
  const uint32_t id = host_->intern(host_, "/a/b", 4);
  size_t length = 0;

  EXPECT_NE(id, 0u);
  EXPECT_EQ(host_->intern(host_, "/a/bc", 4), id);
  EXPECT_STREQ(host_->text(host_, id, &length), "/a/b");
  EXPECT_EQ(length, 4u);
  EXPECT_EQ(host_->intern(host_, nullptr, 0), 0u);
  EXPECT_STREQ(host_->text(host_, 0, nullptr), "");
  EXPECT_STREQ(host_->text(host_, 4000000000u, &length), "");
  EXPECT_EQ(length, 0u);
}

TEST_F(Host, ValuesAreCopied) {
  uint64_t values[] = {1, 2, 3};

  ASSERT_EQ(host_->set_values(host_, &record_.a, values, 3), FEIGN_OK);
  values[0] = 9;
  ASSERT_EQ(host_->set_values(host_, &record_.a, record_.a.values, 2), FEIGN_OK);

  ASSERT_EQ(record_.a.value_count, 2u);
  EXPECT_EQ(record_.a.values[0], 1u);
  EXPECT_EQ(record_.a.values[1], 2u);
}

TEST_F(Host, OpsAreFoundByLayerAndName) {
  const uint32_t op = host_->op(host_, "posix", "pread64");

  EXPECT_EQ(op, uint32_t{FEIGN_POSIX_PREAD64});
  EXPECT_STREQ(host_->op_info(host_, op)->name, "pread64");
  EXPECT_EQ(host_->op(host_, "posix", "pread65"), 0u);
  EXPECT_EQ(host_->op(host_, nullptr, nullptr), 0u);
  EXPECT_EQ(host_->op_info(host_, 1u << 31), nullptr);
}

TEST_F(Host, ALayerCanBeAdded) {
  const feign_op_info op = {
      sizeof op, 0, "put", "house", FEIGN_KIND_WRITE, 0, 0, sizeof(feign_arg_info), nullptr};
  const feign_op_info* ops[] = {&op};
  const feign_layer layer = {sizeof layer, 1, "house", ops};
  uint32_t first = 0, again = 0;

  EXPECT_EQ(host_->register_layer(host_, &layer, &first), FEIGN_OK);
  EXPECT_EQ(host_->register_layer(host_, &layer, &again), FEIGN_OK);

  EXPECT_EQ(first, again);
  EXPECT_EQ(host_->op(host_, "house", "put"), first);
}

TEST_F(Host, ALayerThatIsWrongIsRefusedInWords) {
  const feign_op_info op = {sizeof op, 0, "put", "other", 0, 0, 0, 0, nullptr};
  const feign_op_info* ops[] = {&op};
  feign_layer layer = {sizeof layer, 1, "house", ops};
  uint32_t first = 0;

  EXPECT_LT(host_->register_layer(host_, &layer, &first), 0);
  EXPECT_NE(failure().find("op 0 (put) does not say that it is of this layer"), std::string::npos);
  layer.op_count = UINT32_MAX;
  EXPECT_LT(host_->register_layer(host_, &layer, &first), 0);
  EXPECT_LT(host_->register_layer(host_, nullptr, &first), 0);
}

TEST_F(Host, StreamsAreKnownByTheirRecordedIds) {
  feign_stream_info info{};

  ASSERT_EQ(host_->stream_info(host_, stream_, &info), FEIGN_OK);
  EXPECT_EQ(info.thread, 7);
  EXPECT_EQ(host_->stream(host_, &info), stream_);
  EXPECT_LT(host_->stream_info(host_, 99, &info), 0);
}

TEST_F(Host, ADependencyIsAdded) {
  ASSERT_EQ(host_->depend(host_, &record_.a, stream_, 9, "barrier"), FEIGN_OK);

  ASSERT_EQ(record_.depends.size(), 1u);
  EXPECT_EQ(record_.depends[0].stream, stream_);
  EXPECT_EQ(record_.depends[0].id, 9u);
  EXPECT_NE(record_.a.marks & FEIGN_DEPENDS, 0u);
  EXPECT_EQ(tables_.strings.text(record_.depends[0].rule), "barrier");
}

TEST_F(Host, ADependencyOnWhatIsNotBeforeIsRefused) {
  EXPECT_EQ(host_->depend(host_, &record_.a, stream_, 10, "x"), FEIGN_ERR_PLUGIN);
  EXPECT_EQ(failure(), "sample: depend(): activity 10 on activity 10, which is not before it");
  EXPECT_EQ(host_->depend(host_, &record_.a, 5, 1, "x"), FEIGN_ERR_PLUGIN);
  EXPECT_EQ(failure(), "sample: depend(): on stream 5, which does not exist");
}

TEST_F(Host, WhatIsLeftOutIsCountedByNameAndReason) {
  char name[] = "mmap";

  for (int i = 0; i < 3; ++i) host_->left_out(host_, stream_, name, "no I/O", 5, 0);
  name[0] = 'n';  // the same address, another text
  host_->left_out(host_, stream_, name, "no I/O", 7, 0);

  const LeftOut& first = tables_.left_out.at({"mmap", "no I/O"});
  EXPECT_EQ(first.count, 3u);
  EXPECT_EQ(first.duration_ns, 15u);
  EXPECT_EQ(tables_.left_out.at({"nmap", "no I/O"}).count, 1u);
}

TEST_F(Host, WhatIsLeftOutDoesNotGrowWithoutBound) {
  for (int i = 0; i < 10000; ++i)
    host_->left_out(host_, stream_, ("call" + std::to_string(i)).c_str(), "unknown", 1, 0);

  EXPECT_LE(tables_.left_out.size(), 5000u);
  uint64_t count = 0;
  for (const auto& [key, entry] : tables_.left_out) count += entry.count;
  EXPECT_EQ(count, 10000u);
}

TEST_F(Host, WaitingAndSleepingAreCreditedToTheirStream) {
  using Passed = std::tuple<uint32_t, uint64_t, feign_passed>;
  std::vector<Passed> all;
  instance_->set_wait_sink(
      [](void* ctx, uint32_t stream, uint64_t ns, feign_passed how) {
        static_cast<decltype(all)*>(ctx)->emplace_back(stream, ns, how);
      },
      &all);

  host_->left_out(host_, stream_, "futex", "waits", 50, FEIGN_WAITED);
  host_->left_out(host_, stream_, "mmap", "no I/O", 60, FEIGN_COMPUTED);
  host_->left_out(host_, stream_, "nanosleep", "a pause", 70, FEIGN_SLEPT);

  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], Passed(stream_, 50, FEIGN_WAITED));
  EXPECT_EQ(all[1], Passed(stream_, 70, FEIGN_SLEPT));
}

TEST_F(Host, AFailureIsSaidOnceWithinTheName) {
  EXPECT_EQ(host_->fail(host_, FEIGN_ERR_IO, "read x: no"), FEIGN_ERR_IO);

  const Error said = instance_->failure(FEIGN_ERR_IO);
  EXPECT_EQ(said.code(), FEIGN_ERR_IO);
  EXPECT_EQ(said.text(), "sample: read x: no");
  EXPECT_EQ(instance_->failure(FEIGN_ERR_IO).text(),
            "sample: failed with FEIGN_ERR_IO and did not say why");
}

TEST_F(Host, ANameInTheTextIsNotSaidTwice) {
  host_->fail(host_, FEIGN_ERR_NOMEM, "sample: out of memory");

  EXPECT_EQ(instance_->failure(FEIGN_ERR_NOMEM).text(), "sample: out of memory");
}

TEST_F(Host, AStatusThatDoesNotExistIsThePluginsFault) {
  const Error said = instance_->failure(static_cast<feign_status>(-77));

  EXPECT_EQ(said.code(), FEIGN_ERR_PLUGIN);
  EXPECT_EQ(said.text(), "sample: returned -77, which is no failure that feign.h names");
}

TEST_F(Host, ExtensionsAreTheCores) {
  EXPECT_EQ(host_->extension(host_, "feign.run/1"), nullptr);

  static int answer = 0;
  auto other = Instance::create(
      component_, {"sample", {}, ""}, tables_,
      [](void* ctx, const char*) -> const void* { return ctx; }, &answer);

  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->host().extension(&(*other)->host(), "x"), &answer);
}

TEST(Instances, OptionsAreParsedWithinTheComponentsName) {
  Plugins plugins;
  Tables tables;
  const Component c = plugins.open(test_plugin("sample"))->front();

  auto made = Instance::create(c, {"sample", {{"choice", "some"}}, ""}, tables);

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(), "sample: choice=some: want reads|writes|both");
}

TEST(Instances, ACreateThatFailsIsAnErrorAndNotDestroyed) {
  Plugins plugins;
  Tables tables;
  const Component c = plugins.open(test_plugin("bad-bad-create"))->front();

  auto made = Instance::create(c, {"sample", {}, ""}, tables);

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(), "sample: failed with FEIGN_ERR_ARGUMENT and did not say why");
}

TEST(Describe, IsMadeOfTheTable) {
  Plugins plugins;
  const Component c = plugins.open(test_plugin("sample"))->front();

  EXPECT_EQ(describe(c),
            "sample - Passes everything on.\n"
            "  flag=yes|no                     A flag. [no]\n"
            "  choice=reads|writes|both        One of several. [both]\n"
            "  count=N                         A number. [1]\n"
            "  size=SIZE                       A size. [64k]\n"
            "  ratio=NUMBER                    A share. [0.5]\n"
            "  text=TEXT                       A text. []\n"
            "  list=TEXT…                      Some texts. [none]\n"
            "  pause=TIME                      A time. [10ms]\n");
}

TEST(Describe, IsJsonForScripts) {
  Plugins plugins;
  const Component c = plugins.open(test_plugin("sample"))->front();

  const auto json = nlohmann::json::parse(describe_json(c));

  EXPECT_EQ(json["name"], "sample");
  EXPECT_EQ(json["role"], "modifier");
  EXPECT_EQ(json["abi"], "1.0");
  ASSERT_EQ(json["options"].size(), 8u);
  EXPECT_EQ(json["options"][1]["choices"][2], "both");
  EXPECT_EQ(json["options"][2]["max"], 100);
  EXPECT_EQ(json["options"][6]["required"], false);
}

// `feign check`: its exit status and what it prints.
struct Checked {
  int status = -1;
  std::string error, text;
};
Checked check(const std::string& name) {
  Checked checked;
  ::testing::internal::CaptureStdout();
  auto result = check_command(test_plugin(name));
  checked.text = ::testing::internal::GetCapturedStdout();
  if (result)
    checked.status = *result;
  else
    checked.error = result.error().text();
  return checked;
}

TEST(Check, PassesAGoodModifier) {
  const Checked c = check("sample");

  EXPECT_EQ(c.status, 0) << c.text;
  EXPECT_NE(c.text.find("ok   modifier sample: does the same at batch sizes 1, 2, 3 and 64"),
            std::string::npos)
      << c.text;
  EXPECT_NE(c.text.find(" 0 failed"), std::string::npos) << c.text;
}

TEST(Check, DoesNotTakeWhatCreateFailedAtForProcess) {
  const Checked c = check("bad-does-without");

  EXPECT_EQ(c.status, 0) << c.text;
}

TEST(Check, PassesAGoodPluginOfSeveralRoles) {
  const Checked c = check("roles");

  EXPECT_EQ(c.status, 0) << c.text;
  EXPECT_NE(c.text.find("ok   writer roles: writes its file"), std::string::npos) << c.text;
  EXPECT_NE(c.text.find("ok   provider roles: gives the same"), std::string::npos) << c.text;
  EXPECT_NE(c.text.find("ok   replayer idle: skips or refuses"), std::string::npos) << c.text;
}

TEST(Check, PassesTheShortForm) {
  EXPECT_EQ(check("figure4").status, 0);
  EXPECT_EQ(check("short-mutator").status, 0);
}

TEST(Check, IsAnErrorOnWhatCannotBeLoaded) {
  EXPECT_NE(check("no-entry").error.find("is no Feign plug-in"), std::string::npos);
  EXPECT_NE(check("does-not-exist").error.find("No such file"), std::string::npos);
}

TEST(Check, TakesOptionsAfterThePath) {
  ::testing::internal::CaptureStdout();
  auto good = check_command(test_plugin("sample") + ",count=7,choice=reads");
  auto unknown = check_command(test_plugin("sample") + ",colour=red");
  auto wrong = check_command(test_plugin("sample") + ",choice=reds");
  ::testing::internal::GetCapturedStdout();

  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 0);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("nothing in it has an option \"colour\""),
            std::string::npos);
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().text().starts_with("sample: choice=reds: want "))
      << wrong.error().text();
}

struct Broken {
  const char* plugin;
  std::string line;
};
class CheckFinds : public ::testing::TestWithParam<Broken> {};

TEST_P(CheckFinds, TheBrokenRule) {
  const Checked c = check(GetParam().plugin);

  EXPECT_EQ(c.status, 1) << c.error;
  EXPECT_NE(c.text.find("FAIL " + GetParam().line), std::string::npos) << c.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, CheckFinds,
    ::testing::Values(
        Broken{"bad-later-minor", "its tables are valid: "},
        Broken{"bad-no-process", "its tables are valid: "},
        Broken{"bad-option-past", "its tables are valid: "},
        Broken{"bad-wrong-roles", "its tables are valid: " + test_plugin("bad-wrong-roles") +
                                      ": FEIGN_ROLES() says provider, its components say modifier"},
        Broken{"bad-twice",
               "modifier sample: keeps order, emits what is due, and once: emitted an "
               "activity that was not its own"},
        Broken{"bad-thief",
               "modifier sample: keeps order, emits what is due, and once: emitted an "
               "activity that was not its own"},
        Broken{"bad-no-text",
               "modifier sample: keeps order, emits what is due, and once: emitted an "
               "activity of path 2147483647, which host->intern() never gave"},
        Broken{"bad-ends", "modifier sample: keeps order, emits what is due, and once: "},
        Broken{"bad-crashes",
               "modifier sample: keeps order, emits what is due, and once: killed by "
               "signal 6"},
        Broken{"bad-exits",
               "modifier sample: keeps order, emits what is due, and once: ended the "
               "process with exit status 7"},
        Broken{"bad-peeks",
               "modifier sample: keeps order, emits what is due, and once: changed an "
               "activity that was not due"},
        Broken{"bad-batches", "modifier sample: does the same at batch sizes"},
        Broken{"bad-swallows", "modifier sample: passes on that emit() failed: "},
        Broken{"bad-second-symbol",
               "exports one symbol: it exports more than feign_plugin_v1: "
               "second_symbol"},
        Broken{"bad-bad-create", "modifier sample: can be created: "},
        Broken{
            "bad-loses",
            "modifier sample: keeps order, emits what is due, and once: process() gave FEIGN_OK, "
            "though this failed: sample: depend(): activity "},
        Broken{
            "bad-values",
            "modifier sample: keeps order, emits what is due, and once: emitted an activity with "
            "values that host->set_values() did not give it"},
        Broken{"bad-prints", "prints nothing on standard output: it printed: at the end"},
        Broken{"bad-looks-too-far",
               "modifier sample: can be created: sample: look-ahead of 4294967295 activities, want "
               "at most 16777216"},
        Broken{"bad-too-many",
               "provider roles: gives the same activities, never more than it is "
               "asked for: emitted 2 activities, asked for 1"},
        Broken{"bad-half-written", "writer roles: leaves nothing half-written"},
        Broken{"bad-claims", "replayer idle: skips or refuses an op that it does not know: "},
        Broken{"bad-next",
               "provider roles: gives the same activities, never more than it is asked for: next() "
               "gave 99: want FEIGN_OK, FEIGN_END or an error"},
        Broken{"bad-no-op",
               "provider roles: gives the same activities, never more than it is asked for: "
               "emitted an activity of op 0, which does not exist"},
        Broken{"bad-opens",
               "replayer idle: skips or refuses an op that it does not know: idle: open_stream() "
               "gave 99: want FEIGN_OK or an error"},
        Broken{"bad-executes",
               "replayer idle: skips or refuses an op that it does not know: idle: execute() gave "
               "99: want FEIGN_OK or an error"},
        Broken{"bad-writes",
               "writer roles: writes its file: roles: write() gave 99: want FEIGN_OK or an error"},
        Broken{"bad-finishes",
               "writer roles: writes its file: roles: finish() gave 99: want FEIGN_OK or an "
               "error"}));

}  // namespace
}  // namespace feign
