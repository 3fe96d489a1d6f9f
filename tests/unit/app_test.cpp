// From a command line, an environment and a config file to what is run, or to the reason why not.
#include "cli/app.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "cli/lock_plan.hpp"
#include "cli/refusal.hpp"
#include "core/spelling.hpp"
#include "util/log.hpp"

namespace dlock::cli {
namespace {

using namespace std::string_literals;
using std::chrono::seconds;

Result<std::string> place(const Target& target) {
  if (target.url.query.empty())
    return canonical_list(target.url.hosts) + canonical_path(target.url.path);
  return Error{Errc::invalid, "takes no query"};
}

Result<std::unique_ptr<Backend>> never_opened(const Target&, Deadline, Cancel) {
  return Error{Errc::unreachable, "not opened here"};
}

// A service of three servers that do not tell the same.
class Divided : public Backend {
 public:
  std::string location() const override { return "several://a,b,c"; }
  Result<std::unique_ptr<Lease>> acquire(const Request&, const Wait&) override {
    return Error{Errc::unreachable, "not here"};
  }
  Result<std::vector<LockInfo>> list(std::string_view, Deadline) override {
    return std::vector<LockInfo>();
  }
  Result<LockInfo> inspect(std::string_view key, Deadline) override {
    LockInfo lock{.key = std::string(key), .nodes_agreeing = 1, .nodes_total = 3};
    lock.remarks = {"remote b: held by web-4 pid 17 there", "remote c: \x1b[31mrefused"};
    return lock;
  }
  Result<bool> force_release(std::string_view, std::string_view, const Reason&, Deadline) override {
    return false;
  }
};

Result<std::unique_ptr<Backend>> open_divided(const Target&, Deadline, Cancel) {
  return std::make_unique<Divided>();
}

constexpr std::array kRemoteForms{UrlForm{.scheme = "remote", .example = "remote://host"},
                                  UrlForm{.scheme = "remotes", .example = "", .tls = true}};

const std::array kRows{
    BackendEntry{.name = "local",
                 .traits = {.shared = true, .slots = true, .reach = Traits::Reach::host},
                 .place = place,
                 .open = never_opened},
    BackendEntry{.name = "remote",
                 .aliases = {"rm"},
                 .forms = kRemoteForms,
                 .traits = {.shared = true, .slots = true},
                 .place = place,
                 .open = never_opened},
    BackendEntry{
        .name = "several", .server_scheme = "remote", .place = place, .open = open_divided},
    BackendEntry{.name = "plain", .place = place, .open = never_opened},
    BackendEntry{.name = "absent"},
};

class App : public testing::Test {
 protected:
  App() {
    std::string name = testing::TempDir() + "dlock-app-XXXXXX";
    dir_ = mkdtemp(name.data());
    for (const Flag& flag : flags()) {
      if (flag.in_environment()) unsetenv(variable_of(flag).c_str());
    }
    // So that nothing is found where nothing was put.
    config("{}");
  }
  ~App() override {
    for (const Flag& flag : flags()) {
      if (flag.in_environment()) unsetenv(variable_of(flag).c_str());
    }
    std::filesystem::remove_all(dir_);
  }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = dir_ + '/' + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
    return path;
  }
  void config(const std::string& text) const { set("DLOCK_CONFIG", write("c.json", text)); }
  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

  static RunPlan exact_plan(std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    Settings settings;
    return plan_run(parse(pointers), kRows, settings);
  }
  // dlock run --key job WORDS... -- true
  static RunPlan plan(std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "--key", "job"});
    words.insert(words.end(), {"--", "true"});
    return exact_plan(std::move(words));
  }
  static RunSpec spec(std::vector<std::string> words) { return plan(std::move(words)).spec; }

  // "STATUS MESSAGE" of the refusal.
  static std::string exact_refusal(std::vector<std::string> words) {
    try {
      exact_plan(std::move(words));
    } catch (const Refusal& refusal) {
      return std::to_string(refusal.status()) + ' ' + refusal.what();
    }
    return "none";
  }
  static std::string refusal(std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "--key", "job"});
    words.insert(words.end(), {"--", "true"});
    return exact_refusal(std::move(words));
  }
  // The refusal of what the config file says, without its directory.
  std::string config_refusal(const std::string& text, std::vector<std::string> words = {}) const {
    config(text);
    std::string out = refusal(std::move(words));
    const auto at = out.find(dir_ + '/');
    return at == std::string::npos ? out : out.erase(at, dir_.size() + 1);
  }

  std::string dir_;
};

TEST_F(App, DefaultsAreThoseOfTheManPage) {
  const RunPlan run = plan({});
  EXPECT_EQ(run.entry->name, "local");
  EXPECT_EQ(run.target.url.scheme, "local");
  EXPECT_EQ(run.target.connect_timeout, seconds{5});
  EXPECT_FALSE(run.target.prefix);
  EXPECT_EQ(run.spec.keys.front(), "job");
  EXPECT_EQ(run.spec.mode, Mode::exclusive);
  EXPECT_EQ(run.spec.ttl, seconds{30});
  EXPECT_EQ(run.spec.kill_after, seconds{5});
  EXPECT_EQ(run.spec.conflict_status, 75);
  EXPECT_FALSE(run.spec.wait);
  EXPECT_FALSE(run.spec.max_hold);
  EXPECT_EQ(run.spec.on_lost, OnLost::term);
  EXPECT_EQ(run.spec.leftovers, Leftovers::ignore);
  EXPECT_EQ(run.spec.argv, std::vector{"true"s});
}

TEST_F(App, EachLayerBeatsTheOnesBelow) {
  EXPECT_EQ(spec({}).ttl, seconds{30});
  config(R"({"ttl": 10, "backends": {"prod": {"url": "remote://h", "ttl": 20}}})");
  EXPECT_EQ(spec({}).ttl, seconds{10});
  EXPECT_EQ(spec({"-b", "prod"}).ttl, seconds{20});
  set("DLOCK_TTL", "40");
  EXPECT_EQ(spec({"-b", "prod"}).ttl, seconds{40});
  EXPECT_EQ(spec({"-b", "prod", "--ttl=50"}).ttl, seconds{50});
  set("DLOCK_TTL", "");
  EXPECT_EQ(spec({}).ttl, seconds{10});
}

TEST_F(App, AYesOrNoCanBeTakenBackInAHigherLayer) {
  const auto is_quiet = [](std::vector<std::string> words) {
    plan(std::move(words));
    return !util::log_shows(util::Level::note);
  };
  config(R"({"quiet": true})");
  EXPECT_TRUE(is_quiet({}));
  set("DLOCK_QUIET", "no");
  EXPECT_FALSE(is_quiet({}));
  EXPECT_TRUE(is_quiet({"-q"}));
  EXPECT_FALSE(is_quiet({"--quiet=no"}));
}

TEST_F(App, OfRivalsTheHigherLayerCountsAndTheSameLayerIsAMistake) {
  EXPECT_EQ(spec({"-n"}).wait, Millis{0});
  EXPECT_EQ(refusal({"-n", "-w", "5"}), "64 --nonblock: cannot be combined with --wait");
  set("DLOCK_WAIT", "5");
  EXPECT_EQ(spec({}).wait, seconds{5});
  EXPECT_EQ(spec({"-n"}).wait, Millis{0});
  EXPECT_EQ(spec({"-w", "7"}).wait, seconds{7});
  EXPECT_EQ(refusal({"--shared", "--slots", "2"}), "64 --shared: cannot be combined with --slots");
}

TEST_F(App, TheModeOfALockIsNotSetFromOutside) {
  set("DLOCK_SHARED", "1");
  EXPECT_EQ(spec({}).mode, Mode::exclusive);
  set("DLOCK_SHARED", "");
  set("DLOCK_SLOTS", "3");
  EXPECT_EQ(spec({}).mode, Mode::exclusive);
  set("DLOCK_SLOTS", "");
}

TEST_F(App, TheCommandIsTakenByteByByte) {
  const std::vector<std::string> words{"--", "-k", "--", "", "a b", "\xFF", "--help"};
  std::vector<std::string> all{"run", "-k", "job"};
  all.insert(all.end(), words.begin(), words.end());
  EXPECT_EQ(exact_plan(all).spec.argv, std::vector(words.begin() + 1, words.end()));
}

TEST_F(App, ValuesMayLookLikeOptions) {
  EXPECT_EQ(exact_plan({"run", "--key", "-foo", "--", "x"}).spec.keys.front(), "-foo");
  EXPECT_EQ(exact_plan({"run", "--key=-foo", "--", "x"}).spec.keys.front(), "-foo");
  EXPECT_EQ(exact_plan({"run", "-kfoo", "--", "x"}).spec.keys.front(), "foo");
  EXPECT_EQ(exact_plan({"run", "--key=[a,b]", "--", "x"}).spec.keys.front(), "[a,b]");
  EXPECT_EQ(exact_plan({"run", "--key=a=b", "--", "x"}).spec.keys.front(), "a=b");
  EXPECT_EQ(exact_refusal({"run", "--key=", "-n", "--", "x"}), "64 --key: the key is empty");
}

TEST_F(App, AValueThatIsOptionalStandsBehindAnEqualsSign) {
  const auto given = [](std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    return parse(pointers).flags.back().values;
  };
  using Values = std::vector<std::string>;
  EXPECT_EQ(given({"acquire", "--export"}), Values{"sh"});
  EXPECT_EQ(given({"acquire", "--export=fish"}), Values{"fish"});
  EXPECT_EQ(given({"acquire", "--export=no"}), Values{"no"});
  EXPECT_EQ(given({"acquire", "--export=sh", "--export=fish"}), (Values{"sh", "fish"}));
  EXPECT_EQ(exact_refusal({"acquire", "--export", "fish"}),
            "64 unexpected \"fish\"; see: dlock help acquire");
  EXPECT_EQ(exact_refusal({"acquire", "--export="}),
            "64 --export= has an empty value; write --export");
}

TEST_F(App, AMisusedCommandLineIsToldWhatToDo) {
  EXPECT_EQ(exact_refusal({"run", "-k", "a", "./cron.sh", "-v"}),
            "64 put \"--\" before the command: dlock run [OPTION]... -- ./cron.sh");
  EXPECT_EQ(exact_refusal({"run", "-k", "a", "--"}),
            "64 COMMAND is missing behind \"--\"; see: dlock help run");
  EXPECT_EQ(exact_refusal({"run", "-k", "a"}),
            "64 COMMAND is missing: dlock run [OPTION]... -- COMMAND; "
            "see: dlock help run");
  EXPECT_EQ(exact_refusal({"run", "--", "x"}),
            "64 --key is missing: dlock run --key NAME -- COMMAND; see: dlock help run");
  EXPECT_EQ(exact_refusal({"rum"}),
            "64 unknown command \"rum\"; did you mean \"run\"? See: dlock help");
  EXPECT_EQ(refusal({"--frob=secret"}), "64 unknown option \"--frob\"; see: dlock help run");
  EXPECT_EQ(refusal({"stray"}),
            "64 unexpected \"stray\" before \"--\"; the command goes behind it; see: dlock help "
            "run");
}

TEST_F(App, ABadValueIsBlamedOnWhoeverSaidIt) {
  EXPECT_EQ(refusal({"--wait", "-1"}), "64 --wait: \"-1\" is negative; a duration cannot be");
  EXPECT_EQ(refusal({"--wait", "soon"}),
            "64 --wait: \"soon\" is not a duration; use d, h, m, s, ms, as in 90s or 1h30m");
  for (const char* ttl : {"0", "100ms", "25h"}) {
    EXPECT_EQ(refusal({"--ttl", ttl}),
              "64 --ttl: \""s + ttl + "\" is out of range; it must be from 1s to 24h");
  }
  for (const char* ttl : {"-1", "1e9h", "nan", "9223372036854775808", ""}) {
    EXPECT_EQ(refusal({"--ttl", ttl}).substr(0, 9), "64 --ttl:") << ttl;
  }
  EXPECT_EQ(refusal({"--slots", "0"}), "64 --slots: \"0\" is not a number from 1 to 1024");
  EXPECT_EQ(refusal({"-E", "256"}),
            "64 --conflict-exit-code: \"256\" is not a number from 0 to 255");
  EXPECT_EQ(refusal({"--on-lost", "x"}), "64 --on-lost: \"x\" is none of: term, kill, ignore");
  EXPECT_EQ(refusal({"--label", "a\nb"}), "64 --label: holds a control character");
  EXPECT_EQ(refusal({"--label", std::string(1'025, 'x')}),
            "64 --label: is 1025 bytes long; the most is 1024");
  set("DLOCK_TTL", "x");
  EXPECT_EQ(refusal({}),
            "64 DLOCK_TTL: \"x\" is not a duration; use d, h, m, s, ms, as in 90s or 1h30m");
  set("DLOCK_TTL", "");
  EXPECT_EQ(config_refusal("{\n\"ttl\": \"x\"}"),
            "78 c.json:2: ttl: \"x\" is not a duration; use d, h, m, s, ms, as in 90s or 1h30m");
}

TEST_F(App, TheTimeToKillFitsIntoTheTtl) {
  EXPECT_EQ(spec({"--ttl", "8"}).kill_after, seconds{2});
  EXPECT_EQ(spec({"--ttl", "10", "--kill-after", "4.9"}).kill_after, Millis{4'900});
  EXPECT_EQ(refusal({"--ttl", "10", "--kill-after", "5"}),
            "64 --kill-after: must be less than half of the TTL, which is 10s (--ttl)");
  EXPECT_EQ(config_refusal(R"({"kill_after": 20})"),
            "78 c.json:1: kill_after: must be less than half of the TTL, which is 30s");
}

TEST_F(App, AllOptionsReachTheEngine) {
  const RunSpec run =
      spec({"--leftovers", "kill", "--on-lost=ignore", "--max-hold", "1h", "--min-hold", "1m",
            "--status-file", "s", "-E0", "--label", "l", "--slots", "3"});
  EXPECT_EQ(run.leftovers, Leftovers::kill);
  EXPECT_EQ(run.on_lost, OnLost::ignore);
  EXPECT_EQ(run.max_hold, seconds{3'600});
  EXPECT_EQ(run.min_hold, seconds{60});
  EXPECT_EQ(run.status_file, "s");
  EXPECT_EQ(run.conflict_status, 0);
  EXPECT_EQ(run.label, "l");
  EXPECT_EQ(run.mode, Mode::slots);
  EXPECT_EQ(run.slots, 3U);
  EXPECT_FALSE(spec({"--max-hold", "0"}).max_hold);
}

TEST_F(App, ABackendIsANameAnAliasAUrlOrAProfile) {
  EXPECT_EQ(plan({"-b", "remote"}).target.url.scheme, "remote");
  EXPECT_EQ(plan({"-b", "rm"}).target.url.scheme, "remote");
  EXPECT_EQ(plan({"-b", "rm+unix:///sock"}).target.url.scheme, "remote+unix");
  EXPECT_EQ(plan({"-b", "rm://h:1/x"}).target.url.redacted(), "remote://h:1/x");
  config(R"({"backend": "prod", "connect_timeout": "2s",
             "backends": {"prod": {"url": "rm://h2", "prefix": "b:"}}})");
  const Target target = plan({}).target;
  EXPECT_EQ(target.url.redacted(), "remote://h2");
  EXPECT_EQ(target.prefix, "b:");
  EXPECT_EQ(target.connect_timeout, seconds{2});
  EXPECT_EQ(plan({"-b", "remote"}).target.prefix, std::nullopt);
  EXPECT_EQ(plan({"-b", "remote", "--prefix="}).target.prefix, "");
}

TEST_F(App, WhatIsNoBackendIsRefused) {
  EXPECT_EQ(refusal({"-b", "nope"}),
            "64 --backend: \"nope\" is not a backend, and not a profile; the config file has no "
            "profiles; backends: local, remote, several, plain, absent");
  EXPECT_EQ(refusal({"-b", "absent"}),
            "64 --backend: \"absent\" is not built into this dlock (built in: local, remote, "
            "several, plain)");
  EXPECT_EQ(config_refusal(R"({"backend": "absent"})"),
            "78 c.json:1: backend: \"absent\" is not built into this dlock (built in: local, "
            "remote, several, plain)");
  EXPECT_EQ(config_refusal(R"({"backends": {"p": {"url": "rm://h"}}})", {"-b", "nope"}),
            "64 --backend: \"nope\" is not a backend, and not a profile; profiles: p; backends: "
            "local, remote, several, plain, absent");
  EXPECT_EQ(config_refusal("{\"backends\": {\n\"rm\": {\"url\": \"rm://h\"}}}"),
            "78 c.json:2: profile \"rm\" has the name of a backend; give it another");
  EXPECT_EQ(config_refusal(R"({"backends": {"p": {"ttl": 5}}})"),
            "78 c.json:1: profile \"p\" has no \"url\"");
}

TEST_F(App, TheBackendsOwnCheckIsBlamedOnWhoeverNamedIt) {
  EXPECT_EQ(refusal({"-b", "rm://h?x=1"}), "64 --backend: takes no query");
  EXPECT_EQ(config_refusal(R"({"backend": "rm://h?x=1"})"), "78 c.json:1: backend: takes no query");
}

TEST_F(App, WhatABackendCannotDoIsRefusedBeforeAnythingStarts) {
  EXPECT_EQ(refusal({"-b", "plain", "--shared"}),
            "64 --shared: the plain backend has no shared locks");
  EXPECT_EQ(refusal({"-b", "plain", "--slots", "2"}), "64 --slots: the plain backend has no slots");
}

TEST_F(App, ServersComeFromTheFirstThatNamesThem) {
  const auto hosts = [](std::vector<std::string> words) { return plan(words).target.url.hosts; };
  EXPECT_TRUE(hosts({"-b", "remote"}).empty());
  config(R"({"backends": {"p": {"url": "remote://", "servers": ["c1", "c2:2"]}}})");
  EXPECT_EQ(hosts({"-b", "p"}), (std::vector<HostPort>{{"c1", 0}, {"c2", 2}}));
  set("DLOCK_SERVERS", "e1,e2");
  EXPECT_EQ(hosts({"-b", "remote"}), (std::vector<HostPort>{{"e1", 0}, {"e2", 0}}));
  EXPECT_EQ(hosts({"-b", "remote", "-S", "f1,f2:7", "-S", "[::1]:9"}),
            (std::vector<HostPort>{{"f1", 0}, {"f2", 7}, {"::1", 9}}));
  EXPECT_EQ(hosts({"-b", "remote://u"}), (std::vector<HostPort>{{"u", 0}}));
  EXPECT_TRUE(hosts({"-b", "local"}).empty());
  EXPECT_EQ(refusal({"-b", "remote://u", "-S", "f"}),
            "64 --server: the URL of --backend names its servers already");
  EXPECT_EQ(refusal({"-S", "f", "-b", "local"}), "64 --server: the local backend has no servers");
  config("{}");
  set("DLOCK_SERVERS", "");
  EXPECT_EQ(refusal({"-S", "f"}).substr(0, 55),
            "64 --server: names servers, and no backend is named: sa");
  EXPECT_EQ(refusal({"-b", "remote", "-S", "f,"}).substr(0, 12), "64 --server:");
}

TEST_F(App, EachServerMayHaveAUrlWhereTheBackendHasThem) {
  const auto servers = [](const std::string& value) {
    const Target target = plan({"-b", "several", "-S", value}).target;
    EXPECT_EQ(target.url.scheme, "several");
    EXPECT_TRUE(target.url.hosts.empty());
    std::vector<std::string> out;
    for (const Url& url : target.servers) out.push_back(url.redacted());
    return out;
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(servers("remote://u1:p1@h1:1/0,remotes://h2/3?cacert=/x.pem,rm+unix:///run/r.sock,"
                    "RM://h5"),
            (std::vector{"remote://u1:***@h1:1/0"s, "remotes://h2/3?cacert=/x.pem"s,
                         "remote+unix:///run/r.sock"s, "remote://h5"s}));
  EXPECT_EQ(servers("remote://h2,h3,[::1]:4"),
            (std::vector{"remote://h2"s, "remote://h3"s, "remote://[::1]:4"s}));
  testing::internal::GetCapturedStderr();
  const Target plain = plan({"-b", "several", "-S", "h1,h2:7"}).target;
  EXPECT_TRUE(plain.servers.empty());
  EXPECT_EQ(plain.url.hosts, (std::vector<HostPort>{{"h1", 0}, {"h2", 7}}));
  set("DLOCK_SERVERS", "remote://e1,e2");
  EXPECT_EQ(plan({"-b", "several"}).target.servers.size(), 2U);
  EXPECT_EQ(plan({"-b", "several://u:p@/3"}).target.servers.size(), 2U);
  EXPECT_TRUE(plan({"-b", "several://h"}).target.servers.empty());
  set("DLOCK_SERVERS", "");
  config(R"({"backends": {"p": {"url": "several://", "servers": ["remote://u:p@c1", "c2,c3"]}}})");
  EXPECT_EQ(plan({"-b", "p"}).target.servers.size(), 3U);
}

TEST_F(App, WhatIsNoServerIsRefused) {
  const auto fault = [](const std::string& value) {
    return refusal({"-b", "several", "-S", value});
  };
  const std::string no_url =
      "64 --server: takes HOST, HOST:PORT or a URL, as in remote://user:password@host; in a "
      "password a comma is written %2C";
  const std::string other =
      "64 --server: the URL of a server must begin with remote://; another backend's goes into "
      "--backend";
  const auto bad_port = [](const std::string& number) {
    return "64 --server: server " + number + ": bad port in the URL: must be 1 to 65535";
  };
  EXPECT_EQ(fault("local:///x"), other);
  EXPECT_EQ(fault("nope://h"), other);
  EXPECT_EQ(fault("several://h1"), other);
  EXPECT_EQ(fault("h1,app@h2"), no_url);
  EXPECT_EQ(fault("remote://u:se,cret@h"), no_url);
  EXPECT_EQ(fault("remote://u:secret,remote://v:w@h"), bad_port("1 of 2"));
  EXPECT_EQ(fault("remote://h:0,h"), bad_port("1 of 2"));
  EXPECT_EQ(fault("remote://u:w@h,"), "64 --server: server 2 of 2: no host name in the address");
  EXPECT_EQ(fault("h,"), "64 --server: server 2 of 2: no host name in the address");
  EXPECT_EQ(fault("remote://u:se?cret@h"),
            "64 --server: server 1 of 1: an @ behind a ? in the URL: a ? in a password is written "
            "%3F, an @ in the query %40");
  EXPECT_EQ(fault("remotes://h1,h2,h3"),
            "64 --server: server 2 of 3 has no scheme; beside a remotes:// URL each server needs a "
            "URL of its own: remotes:// with TLS, remote:// without");
  EXPECT_EQ(fault("h1,REMOTES://h2").substr(0, 40), "64 --server: server 1 of 2 has no scheme");
  EXPECT_EQ(refusal({"-b", "remote", "-S", "remote://h"}),
            "64 --server: takes HOST or HOST:PORT; a URL or a user goes into --backend");
  EXPECT_EQ(refusal({"-b", "several://h", "-S", "remote://h"}),
            "64 --server: the URL of --backend names its servers already");
}

TEST_F(App, APasswordComesFromUrlOrFile) {
  const auto password = [](std::vector<std::string> words) {
    return plan(words).target.url.password;
  };
  const std::string file = write("pw", "from-file\n");
  EXPECT_EQ(password({"-b", "rm://u@h", "--password-file", file}), "from-file");
  config(R"({"backends": {"p": {"url": "rm://u:in-url@h"}, "q": {"url": "rm://u@h",
             "password_file": ")" +
         file + R"("}}})");
  EXPECT_EQ(password({"-b", "p"}), "in-url");
  EXPECT_EQ(password({"-b", "q"}), "from-file");
  EXPECT_EQ(password({"-b", "p", "--password-file", file}), "from-file");
  set("DLOCK_PASSWORD_FILE", dir_ + "/none");
  EXPECT_EQ(password({"-b", "local"}), "");
  EXPECT_EQ(refusal({"-b", "q"}),
            "78 DLOCK_PASSWORD_FILE: " + dir_ + "/none: No such file or directory");
  set("DLOCK_PASSWORD_FILE", "");
  chmod(file.c_str(), 0644);
  EXPECT_EQ(refusal({"-b", "q"}).substr(0, 3), "78 ");
}

TEST_F(App, ThePasswordFileIsForServersThatHaveNoneOfTheirOwn) {
  const std::string file = write("pw", "from-file\n");
  set("DLOCK_SERVERS", "remote://u:its@h1,remote://h2,h3");
  const Target target = plan({"-b", "several", "--password-file", file}).target;
  EXPECT_EQ(target.url.password, "from-file");
  EXPECT_EQ(target.servers.at(0).password, "its");
  EXPECT_EQ(target.servers.at(1).password, "");
  set("DLOCK_SERVERS", "remote://u:its@h1");
  EXPECT_EQ(refusal({"-b", "several", "--password-file", file}),
            "64 --password-file: each URL of DLOCK_SERVERS holds a password already");
  config(R"({"backends": {"p": {"url": "several://", "password_file": ")" + file + "\"}}}");
  EXPECT_EQ(plan({"-b", "p"}).target.url.password, "");
}

TEST_F(App, AConfigFileWithAPasswordAmongItsServersMustBePrivate) {
  for (const char* servers :
       {R"("remote://u:secret@h")", R"(["h1", "remote://:secret@h"])",
        R"("h1,remote://u:secret@h")", R"("remote://h1?cacert=/x,remote://u:secret@h2")",
        R"("remote://h1?x=1,remote://h2?password=secret")", R"("remote://u:se,cret@h")"}) {
    const std::string text =
        R"({"backend": "p", "backends": {"p": {"url": "several://", "servers": )"s + servers +
        "}}}";
    config(text);
    chmod((dir_ + "/c.json").c_str(), 0644);
    const std::string said = refusal({});
    EXPECT_NE(said.find("chmod"), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  }
  config(R"({"backend": "p", "backends": {"p": {"url": "several://",
             "servers": ["h1,h2:1", "remote://h3?cacert=/x"]}}})");
  chmod((dir_ + "/c.json").c_str(), 0644);
  EXPECT_EQ(plan({}).target.servers.size(), 3U);
}

TEST_F(App, ShardsComeFromTheHighestLayerThatSaysWhereTheLocksAre) {
  const auto shards = [](std::vector<std::string> words) {
    std::string out;
    for (const Target& shard : plan(std::move(words)).target.shards) {
      out += (out.empty() ? "" : " ") + shard.url.redacted();
    }
    return out;
  };
  config(R"({"backends": {"db": {"shards": ["rm://p1", "remotes://p2/x"], "connect_timeout": 7,
                                 "prefix": "p:"},
                          "one": {"url": "rm://h"}}})");
  EXPECT_EQ(shards({"-b", "one"}), "");
  const RunPlan run = plan({"-b", "db"});
  EXPECT_EQ(run.entry->name, "remote");
  EXPECT_EQ(run.target.url.redacted(), "remote://");
  EXPECT_EQ(run.target.shards.at(0).url.redacted(), "remote://p1");
  EXPECT_EQ(run.target.shards.at(1).url.redacted(), "remotes://p2/x");
  EXPECT_EQ(run.target.shards.at(1).prefix, "p:");
  EXPECT_EQ(run.target.shards.at(1).connect_timeout, seconds{7});
  EXPECT_TRUE(run.target.shards.at(1).shards.empty());
  set("DLOCK_BACKEND", "one");
  EXPECT_EQ(shards({}), "");
  EXPECT_EQ(shards({"-b", "db"}), "remote://p1 remotes://p2/x");
  set("DLOCK_BACKEND", "db");
  EXPECT_EQ(shards({}), "remote://p1 remotes://p2/x");
  set("DLOCK_SERVERS", "e1,e2");  // which is for a backend without a URL
  EXPECT_EQ(shards({}), "remote://p1 remotes://p2/x");
}

TEST_F(App, ShardsThatCannotBeAreRefused) {
  const auto fault = [this](const std::string& value) {
    return config_refusal(R"({"backends": {"db": {"shards": [")" + value + R"("]}}})",
                          {"-b", "db"});
  };
  EXPECT_EQ(fault(""),
            "78 c.json:1: shards: shard 1 of 1 must be a URL, as in redis://host:6379/0");
  EXPECT_EQ(fault("remote"), fault(""));
  EXPECT_EQ(fault("rm://h1,rm://h:0"),
            "78 c.json:1: shards: shard 2 of 2: bad port in the URL: must be 1 to 65535");
  EXPECT_EQ(fault("rm://u:secret,rm://v:w@h"),
            "78 c.json:1: shards: shard 1 of 2: bad port in the URL: must be 1 to 65535");
  EXPECT_EQ(fault("rm://u:se%zzcret@h"),
            "78 c.json:1: shards: shard 1 of 1: bad %-escape before the @ of the URL");
  EXPECT_EQ(fault("rm://a,local:///x"),
            "78 c.json:1: shards: all shards must be of the same backend, not remote and local");
  EXPECT_EQ(
      fault("rm://a,nope://u:secret@h").substr(0, 85),
      "78 c.json:1: shards: shard 2 of 2 does not begin with the name of a backend; backends");
  EXPECT_EQ(fault("rm://h/x,rm://u:secret@H/x/"),
            "78 c.json:1: shards: shard 2 of 2 is the same database as shard 1");
  EXPECT_EQ(fault("rm://a,rm://b?x=1"), "78 c.json:1: shards: shard 2 of 2: takes no query");
  EXPECT_EQ(fault("absent://a").substr(0, 52),
            "78 c.json:1: shards: \"absent\" is not built into this");

  const auto in_file = [this](const std::string& profile) {
    return config_refusal("{\"backends\": {\n\"db\": " + profile + "}}", {"-b", "db"});
  };
  EXPECT_EQ(in_file(R"({"ttl": 5})"), "78 c.json:2: profile \"db\" has no \"url\"");
  EXPECT_EQ(in_file("{\"url\": \"rm://h\",\n\"shards\": [\"rm://h\"]}"),
            "78 c.json:3: profile \"db\" has both \"url\" and \"shards\"; it is one or the other");
  EXPECT_EQ(in_file("{\"shards\": [\"rm://h\"],\n\"servers\": \"h\"}"),
            "78 c.json:3: servers: the URLs of " + dir_ +
                "/c.json:2: shards name their servers themselves");
  EXPECT_EQ(in_file(R"({"shards": ["rm://h", "rm://h"]})"),
            "78 c.json:2: shards: shard 2 of 2 is the same database as shard 1");
  EXPECT_EQ(in_file(R"({"shards": ["rm://h", "db"]})"),
            "78 c.json:2: shards: shard 2 of 2 must be a URL, as in redis://host:6379/0");
  EXPECT_EQ(in_file(R"({"shards": [["rm://h"]]})"), "78 c.json:2: is nested too deeply");
  EXPECT_EQ(in_file(R"({"shards": []})"), "78 c.json:2: \"shards\" is empty");
  EXPECT_EQ(config_refusal(R"({"shards": "rm://h"})"),
            "78 c.json:1: unknown key \"shards\"; use \"shards\" in a profile of the config file");
}

TEST_F(App, ThePasswordFileIsForShardsThatHaveNoneOfTheirOwn) {
  const std::string file = write("pw", "from-file\n");
  const auto passwords = [](std::vector<std::string> words) {
    std::vector<std::string> out;
    for (const Target& shard : plan(std::move(words)).target.shards) {
      out.push_back(shard.url.password);
    }
    return out;
  };
  using Passwords = std::vector<std::string>;
  const std::string own = "\"password_file\": \"" + file + "\"";
  config("{\"backends\": {\"db\": {\"shards\": [\"rm://u:its@a\", \"rm://u@b\"], " + own +
         "}, \"full\": {\"shards\": [\"rm://u:1@a\", \"rm://u:2@b\"]}}}");
  EXPECT_EQ(passwords({"-b", "db"}), (Passwords{"its", "from-file"}));
  EXPECT_EQ(passwords({"-b", "full"}), (Passwords{"1", "2"}));
  EXPECT_EQ(passwords({"-b", "full", "--password-file", file}),
            (Passwords{"from-file", "from-file"}));
}

TEST_F(App, AConfigFileWithAPasswordAmongItsShardsMustBePrivate) {
  config(R"({"backends": {"db": {"shards": ["rm://a", "rm://u:secret@b"]}}})");
  chmod((dir_ + "/c.json").c_str(), 0644);
  const std::string said = refusal({"-b", "db"});
  EXPECT_NE(said.find("chmod"), std::string::npos) << said;
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

TEST_F(App, NoMessageShowsAPassword) {
  testing::internal::CaptureStderr();
  std::string said;
  for (const char* url :
       {"rm://u:secret@h", "rm://u:secret@h:0", "rm://u:secret@h?x=1", "absent://u:secret@h",
        "nope://u:secret@h", "rm:/u:secret@h", "u:secret@h", "rm//secret@h", "://u:secret@h",
        "rm://u:secret@h?password=secret", "rm://u:secret%zz@h", "rm://h,u:secret@i j"}) {
    said += refusal({"-b", url}) + '\n';
    said += refusal({"-b", "remote", "-S", url}) + '\n';
    said += refusal({"-b", "several", "-S", url}) + '\n';
    said += refusal({"-b", "several", "-S", "h,"s + url + ",h"}) + '\n';
    said += refusal({url}) + '\n' + refusal({"--ttl", url}) + '\n' + refusal({"--on-lost", url});
    said += exact_refusal({url}) + '\n' + exact_refusal({"run", "-k", "job", url}) + '\n';
    set("DLOCK_BACKEND", url);
    said += refusal({}) + '\n' + refusal({"-S", "h"}) + '\n' + refusal({"--ttl", "x"}) + '\n';
    unsetenv("DLOCK_BACKEND");
    said += config_refusal("{\"backend\": \""s + url + "\"}") + '\n';
    said += config_refusal("{\"backends\": {\"p\": {\"url\": \""s + url + "\"}}}", {"-b", "p"});
    config("{}");
  }
  said += testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

TEST_F(App, APasswordOnTheCommandLineIsWarnedOf) {
  testing::internal::CaptureStderr();
  plan({"-b", "rm://u:secret@h"});
  EXPECT_NE(testing::internal::GetCapturedStderr().find("with ps"), std::string::npos);
  testing::internal::CaptureStderr();
  plan({"-q", "-b", "rm://u:secret@h"});
  set("DLOCK_BACKEND", "rm://u:secret@h");
  plan({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(App, APasswordInAServersUrlIsWarnedOfToo) {
  testing::internal::CaptureStderr();
  plan({"-b", "several", "-S", "remote://h1,remote://u:secret@h"});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the password in --server with ps"), std::string::npos) << said;
  EXPECT_EQ(said.find("secret"), std::string::npos);
  testing::internal::CaptureStderr();
  plan({"-b", "several", "-S", "remote://h1,h2"});
  set("DLOCK_SERVERS", "remote://u:secret@h");
  plan({"-b", "several"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Each command here goes to "local" or nowhere: no password is ever used.
TEST_F(App, APasswordAnywhereLeavesNoCoreFile) {
  // Whether a core file may be left after `dlock WORDS...`, however that ended.
  const auto leaves_core = [](std::vector<std::string> words) {
    words.insert(words.begin(), "dlock");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    prctl(PR_SET_DUMPABLE, 1);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    run_main(static_cast<int>(pointers.size()), pointers.data(), kRows);
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    const bool dumpable = prctl(PR_GET_DUMPABLE) == 1;
    prctl(PR_SET_DUMPABLE, 1);
    return dumpable;
  };
  const std::vector<std::vector<std::string>> commands{
      {"version"},
      {"list", "-b", "local"},
      {"show", "-b", "local", "job"},
      {"run", "-k", "job", "-b", "local", "--bad"},
      {"run", "-k", "job", "-b", "absent", "--", "curl", "http://u:secret@h"}};
  const auto all_leave_core = [&](std::size_t first, bool expected, const std::string& with) {
    for (std::size_t i = first; i < commands.size(); ++i) {
      EXPECT_EQ(leaves_core(commands[i]), expected) << commands[i][0] << " with " << with;
    }
  };
  all_leave_core(0, true, "nothing");

  for (const auto& [name, value, expected] :
       {std::tuple{"DLOCK_BACKEND", "rm://u:secret@h", false},
        std::tuple{"DLOCK_BACKEND", "rm://u@h", true},
        std::tuple{"DLOCK_BACKEND", "rm://h?password=secret", false},
        std::tuple{"DLOCK_BACKEND", "rm://u:secret@h:bad", false},
        std::tuple{"DLOCK_SERVERS", "remote://h1,h2", true},
        std::tuple{"DLOCK_SERVERS", "h1,remote://u:secret@h2", false}}) {
    set(name, value);
    all_leave_core(0, expected, name + " "s + value);
    unsetenv(name);
  }

  const std::vector<std::vector<std::string>> ways{{"-b", "rm://u:secret@h"},
                                                   {"-brm://u:secret@h"},
                                                   {"-qb", "rm://u:secret@h"},
                                                   {"--backend=rm://u:secret@h"},
                                                   {"-S", "h,remote://u:secret@h"}};
  for (const auto& words : ways) {
    std::vector<std::string> with{"list", "-b", "local"};
    with.insert(with.end(), words.begin(), words.end());
    EXPECT_FALSE(leaves_core(with)) << words.back();
  }

  config(R"({"backends": {"p": {"url": "rm://u@h"}, "q": {"url": "rm://h?cert=/x"}}})");
  all_leave_core(1, true, "a config file without passwords");
  for (const char* text :
       {R"({"backends": {"p": {"url": "rm://u:secret@h"}}})", R"({"backend": "rm://u:secret@h"})",
        R"({"backends": {"p": {"shards": ["rm://a", "rm://u:secret@h"]}}})",
        R"({"backends": {"p": {"url": "several://", "servers": "a,remote://u:secret@b"}}})",
        R"({"backend": "rm://u:secret@h", "ttl": )",
        R"({"backend": "rm://u:secret@h", "nonsense": 1})"}) {
    config(text);
    for (const mode_t mode : {0600, 0644}) {
      chmod((dir_ + "/c.json").c_str(), mode);
      EXPECT_FALSE(leaves_core(commands[1])) << text;
      EXPECT_FALSE(leaves_core(commands[2])) << text;
    }
  }
  config("{}");

  const std::string file = write("p", "secret");
  EXPECT_FALSE(leaves_core({"list", "-b", "remote", "--password-file", file}));
  chmod(file.c_str(), 0644);
  EXPECT_FALSE(leaves_core({"list", "-b", "remote", "--password-file", file}));
}

TEST_F(App, ShowTellsPeopleWhichServersTellOtherwise) {
  std::vector<std::string> words{"dlock", "show", "-b", "several", "job"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_main(static_cast<int>(pointers.size()), pointers.data(), kRows), 1);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "job: free\n"
            "  Backend   several://a,b,c\n"
            "  Servers   1 of 3 agree\n"
            "            remote b: held by web-4 pid 17 there\n"
            "            remote c: \\x1b[31mrefused\n");
}

TEST_F(App, ANamedConfigFileMustExist) {
  EXPECT_EQ(refusal({"--config", dir_ + "/none"}), "78 --config: " + dir_ + "/none: no such file");
  EXPECT_EQ(refusal({"--config="}), "none");
}

TEST_F(App, TheUsersConfigFileIsFound) {
  unsetenv("DLOCK_CONFIG");
  std::filesystem::create_directories(dir_ + "/.config/dlock");
  write(".config/dlock/config.json", R"({"ttl": 11})");
  const char* home = getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  unsetenv("XDG_CONFIG_HOME");
  set("HOME", dir_);
  EXPECT_EQ(spec({}).ttl, seconds{11});
  std::filesystem::create_directories(dir_ + "/xdg/dlock");
  write("xdg/dlock/config.json", R"({"ttl": 12})");
  set("XDG_CONFIG_HOME", dir_ + "/xdg");
  EXPECT_EQ(spec({}).ttl, seconds{12});
  unsetenv("XDG_CONFIG_HOME");
  set("HOME", old_home);
}

TEST_F(App, ExitStatusesAreThoseOfTheManPage) {
  const auto status = [](std::vector<std::string> words) {
    words.insert(words.begin(), "dlock");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    const int out = run_main(static_cast<int>(pointers.size()), pointers.data(), kRows);
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    return out;
  };
  EXPECT_EQ(status({"--help"}), 0);
  EXPECT_EQ(status({"run", "-h"}), 0);
  EXPECT_EQ(status({"help", "run"}), 0);
  EXPECT_EQ(status({"--version"}), 0);
  EXPECT_EQ(status({"backends", "--json"}), 0);
  EXPECT_EQ(status({"help", "nope"}), 64);
  EXPECT_EQ(status({"run", "--key"}), 64);
  EXPECT_EQ(status({"run", "-k", "job", "-w", "--", "x"}), 64);
  EXPECT_EQ(status({"run", "-k", "job", "--config", "/none", "--", "x"}), 78);
}

}  // namespace
}  // namespace dlock::cli
