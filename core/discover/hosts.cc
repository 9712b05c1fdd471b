// SPDX-License-Identifier: MIT
#include "discover/hosts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <vector>

#include "../capture/format.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/program.h"
#include "base/shell.h"
#include "cli/run.h"
#include "discover/post.h"
#include "nlohmann/json.hpp"
#include "record/record.h"

namespace feign::discover {
namespace {

using nlohmann::json;

constexpr uint64_t kConnect_ns = 60'000'000'000;  // until all posts are there
constexpr int kAnswer_s = 60;                     // until one has answered
constexpr int kHello_s = 2;                       // until who came has said who it is
constexpr int kClock = 24;                        // questions for the time: the fastest counts
constexpr size_t kMostLine = size_t{64} << 20;

bool send_all(int fd, const char* data, size_t size) {
  while (size != 0) {
    const ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool send_line(int fd, const json& what) {
  const std::string line = what.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return send_all(fd, line.data(), line.size());
}

// More of what the other side sends; false at its end. `stops`: or when this process is to end.
bool receive(int fd, std::string& buffer, bool stops = false) {
  std::vector<char> piece(65536);
  ssize_t n = 0;
  do n = recv(fd, piece.data(), piece.size(), 0);
  while (n < 0 && errno == EINTR && !(stops && g_stop_signal.load() != 0));
  if (n <= 0) return false;
  buffer.append(piece.data(), static_cast<size_t>(n));
  return true;
}

bool receive_line(int fd, std::string& buffer, json& to, bool stops = false) {
  size_t end = 0;
  while ((end = buffer.find('\n')) == std::string::npos)
    if (buffer.size() > kMostLine || !receive(fd, buffer, stops)) return false;
  to = json::parse(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
  buffer.erase(0, end + 1);
  return to.is_object();
}

void waits_for(int fd, int seconds) {
  const timeval patience{seconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);  // the other host may go without a word
  waits_for(fd, kAnswer_s);
}

// This host's addresses, that of itself only at the end.
std::string own_addresses() {
  std::vector<std::string> far, near;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "127.0.0.1";
  for (const ifaddrs* a = all; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP))
      continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr, text.data(),
              text.size());
    ((a->ifa_flags & IFF_LOOPBACK) != 0 ? near : far).emplace_back(text.data());
  }
  freeifaddrs(all);
  far.insert(far.end(), near.begin(), near.end());
  std::string out;
  for (const std::string& a : far) out += (out.empty() ? "" : ",") + a;
  return out;
}

// What this host is to one that watches: the same name means the same processes.
std::string self_name() {
  std::array<char, 64> boot{};
  (void)read_small("/proc/sys/kernel/random/boot_id", boot.data(), boot.size());
  struct stat space {};
  (void)stat("/proc/self/ns/pid", &space);
  return std::string(boot.data(), strcspn(boot.data(), "\n")) + "/" + std::to_string(space.st_ino);
}

// The process that keeps a post there.
Result<pid_t> reach_out(const std::string& reach, const std::string& host,
                        const std::string& command, const std::string& secret) {
  std::vector<std::string> words;
  std::istringstream in(reach);
  for (std::string word; in >> word;) words.push_back(word);
  if (words.empty()) return Error(FEIGN_ERR_ARGUMENT, "--reach: want a command, such as ssh");
  words.push_back(host);
  words.push_back(command);
  std::vector<char*> args;
  for (std::string& word : words) args.push_back(word.data());
  args.push_back(nullptr);
  int input[2];
  if (pipe2(input, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  const pid_t child = fork();
  if (child == 0) {
    setsid();  // without a terminal there is nobody whom ssh could ask: it says what is wrong
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);
    dup2(input[0], STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(args[0], args.data());
    fprintf(stderr, "feign: --reach %s: %s\n", args[0], strerror(errno));
    _exit(127);
  }
  ::close(input[0]);
  const std::string line = secret + "\n";
  if (child > 0) (void)!write(input[1], line.data(), line.size());
  ::close(input[1]);
  if (child < 0) return errno_error("start a process", errno);
  return child;
}

}  // namespace

Hosts::~Hosts() {
  for (Far& f : far_)
    if (f.socket >= 0) ::close(f.socket);  // the post ends with that
  for (Far& f : far_) {
    if (f.process <= 0) continue;
    for (int i = 0; i < 3000 && waitpid(f.process, nullptr, WNOHANG) == 0; ++i) {
      if (i == 2000) kill(-f.process, SIGTERM);
      if (i == 2999) kill(-f.process, SIGKILL);
      sleep_ns(1'000'000);
    }
  }
}

std::vector<pid_t> Hosts::processes() const {
  std::vector<pid_t> out;
  for (const Far& f : far_) out.push_back(f.process);
  return out;
}

Result<void> Hosts::open(const std::vector<std::string>& names, const std::string& reach) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      listen(listener, 64) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&any), &size) != 0) {
    const int why = errno;
    if (listener >= 0) ::close(listener);
    return errno_error("listen for other hosts", why);
  }
  std::array<unsigned char, 16> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    random = {};
  std::string secret;
  for (const unsigned char c : random) {
    std::array<char, 4> hex{};
    snprintf(hex.data(), hex.size(), "%02x", c);
    secret += hex.data();
  }
  const std::string self = own_program();
  const std::string where = own_addresses() + " " + std::to_string(ntohs(any.sin_port)) + " ";
  Result<void> result = {};
  for (const std::string& name : names) {
    far_.emplace_back().name = name;
    auto process =
        reach_out(reach, name, quoted(self) + " discover-post " + where + quoted(name), secret);
    if (!process) {
      ::close(listener);
      return std::move(process.error());
    }
    far_.back().process = *process;
  }
  const uint64_t begin = now_ns();
  const auto missing = [&] {
    return std::find_if(far_.begin(), far_.end(), [](const Far& f) { return f.socket < 0; });
  };
  for (auto at = missing(); at != far_.end() && result; at = missing()) {
    pollfd ready{listener, POLLIN, 0};
    (void)poll(&ready, 1, 100);
    for (Far& f : far_) {
      int status = 0;
      if (f.socket < 0 && f.process > 0 && waitpid(f.process, &status, WNOHANG) == f.process) {
        f.process = -1;
        result = Error(FEIGN_ERR_ARGUMENT, "host " + f.name + ": " + reach +
                                               " ended before a post was there (see above)");
      }
    }
    if (g_stop_signal.load() != 0)
      result = Error(FEIGN_ERR_IO, "interrupted by signal " + std::to_string(g_stop_signal.load()));
    if (now_ns() - begin > kConnect_ns)
      result = Error(FEIGN_ERR_IO, "host " + at->name + ": no post there has come to " + where +
                                       "(a firewall? is feign there, under the same path?)");
    if (!result || (ready.revents & POLLIN) == 0) continue;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    at_once(fd);
    std::string buffer;
    json hello;
    // Anybody may come here, and say anything, or nothing.
    waits_for(fd, kHello_s);
    const bool good =
        receive_line(fd, buffer, hello) && hello.contains("secret") && hello["secret"] == secret;
    const auto who = std::find_if(far_.begin(), far_.end(), [&](const Far& f) {
      return good && f.name == hello.value("host", "") && f.socket < 0;
    });
    if (who == far_.end()) {
      ::close(fd);
      continue;
    }
    waits_for(fd, kAnswer_s);
    if (hello.value("self", "") == self_name()) {
      log(FEIGN_LOG_WARN,
          "discover: --hosts " + who->name + ": is this host, which is watched as it is: left out");
      ::close(fd);
      (void)waitpid(who->process, nullptr, 0);
      far_.erase(who);
      continue;
    }
    who->socket = fd;
    if (hello.value("version", "") != FEIGN_VERSION)
      result = Error(FEIGN_ERR_UNSUPPORTED, "host " + who->name + ": feign " +
                                                hello.value("version", "?") + " is there, want " +
                                                FEIGN_VERSION);
  }
  ::close(listener);
  return result;
}

Result<json> Hosts::ask(size_t i, const json& question) {
  Far& f = far_[i];
  json answer;
  if (!send_line(f.socket, question) || !receive_line(f.socket, f.buffer, answer))
    return Error(FEIGN_ERR_IO, "host " + f.name + ": its post has gone");
  if (answer.contains("error"))
    return Error(FEIGN_ERR_IO, "host " + f.name + ": " + answer.value("error", ""));
  return answer["answer"];
}

Result<void> Hosts::read_clock(size_t i, bool over) {
  auto& best = far_[i].clock[over ? 1 : 0];
  best = {0, 0, UINT64_MAX};
  for (int n = 0; n < kClock; ++n) {
    const uint64_t before = record_ticks();
    auto answer = ask(i, {{"ask", "clock"}});
    const uint64_t half = (record_ticks() - before) / 2;
    if (!answer) return std::move(answer.error());
    if (half < best.bound) best = {answer->at("tick"), before + half, half};
  }
  return {};
}

Result<void> Hosts::fetch(size_t i, const std::string& raw) {
  auto answer = ask(i, {{"ask", "records"}});
  if (!answer) return std::move(answer.error());
  Far& f = far_[i];
  const uint64_t bytes = answer->at("bytes"), size = answer->at("size");
  const std::string path = raw + "/records." + std::to_string(i);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error("open " + path, errno);
  bool good = ftruncate(fd, static_cast<off_t>(size)) == 0;
  for (uint64_t got = 0; got < bytes;) {
    if (f.buffer.empty() && !receive(f.socket, f.buffer)) {
      ::close(fd);
      return Error(FEIGN_ERR_IO, "host " + f.name + ": its post has gone");
    }
    const size_t n = std::min<uint64_t>(f.buffer.size(), bytes - got);
    good = good && write(fd, f.buffer.data(), n) == static_cast<ssize_t>(n);
    f.buffer.erase(0, n);
    got += n;
  }
  // It is called as it was here, and its clock is known by what was asked; what ranks measured as
  // MPI began may be about others.
  feign_control own{}, control{};
  good = good && pread(fd, &control, sizeof control, 0) == static_cast<ssize_t>(sizeof control);
  const int here = ::open((raw + "/records").c_str(), O_RDONLY | O_CLOEXEC);
  good = good && here >= 0 && read(here, &own, sizeof own) == static_cast<ssize_t>(sizeof own);
  if (here >= 0) ::close(here);
  snprintf(control.host, sizeof control.host, "%s", f.name.c_str());
  memcpy(control.reference, own.host, sizeof control.reference);
  for (int n = 0; n < 2; ++n)
    control.aligned[n] = {f.clock[n].tick, f.clock[n].ours, f.clock[n].bound};
  good = good && pwrite(fd, &control, sizeof control, 0) == static_cast<ssize_t>(sizeof control);
  if (::close(fd) != 0 || !good) return errno_error("write " + path, errno);
  return {};
}

namespace {

// What was recorded: as much of the file as was given out.
bool send_records(int socket, const std::string& raw) {
  const std::string path = raw + "/records";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  feign_control control{};
  struct stat st {};
  if (fd < 0 || fstat(fd, &st) != 0 ||
      pread(fd, &control, sizeof control, 0) != static_cast<ssize_t>(sizeof control)) {
    if (fd >= 0) ::close(fd);
    return send_line(socket, {{"error", "read " + path + ": " + strerror(errno)}});
  }
  const uint64_t bytes = std::min(control.bytes, static_cast<uint64_t>(st.st_size));
  bool good = send_line(socket, {{"answer", {{"bytes", bytes}, {"size", st.st_size}}}});
  std::vector<char> piece(65536);
  for (uint64_t sent = 0; sent < bytes && good;) {
    const ssize_t n = pread(fd, piece.data(), std::min<uint64_t>(piece.size(), bytes - sent),
                            static_cast<off_t>(sent));
    good = n > 0 && send_all(socket, piece.data(), static_cast<size_t>(n));
    sent += good ? static_cast<uint64_t>(n) : 0;
  }
  ::close(fd);
  remove_raw(raw, true);
  return good;
}

}  // namespace

Result<void> keep_post(const std::string& addresses, const std::string& port,
                       const std::string& name) {
  std::string secret;
  std::getline(std::cin, secret);
  signal(SIGHUP, SIG_IGN);
  int fd = -1;
  std::istringstream in(addresses);
  for (std::string address; fd < 0 && std::getline(in, address, ',');) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(strtoul(port.c_str(), nullptr, 10)));
    if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) continue;
    const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{3, 0};
    setsockopt(one, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (one >= 0 && connect(one, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0)
      fd = one;
    else if (one >= 0)
      ::close(one);
  }
  if (fd < 0)
    return Error(FEIGN_ERR_IO, "discover-post on " + name + ": nobody at " + addresses + " port " +
                                   port + " can be reached");
  at_once(fd);
  const timeval forever{0, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof forever);
  Post post(name);
  std::string buffer;
  json question;
  bool good = send_line(
      fd, {{"secret", secret}, {"host", name}, {"version", FEIGN_VERSION}, {"self", self_name()}});
  while (good && g_stop_signal.load() == 0 && receive_line(fd, buffer, question, true)) {
    if (question.value("ask", "") == "records") {
      good = send_records(fd, post.raw());
      continue;
    }
    try {
      auto answer = post.answer(question);
      good = send_line(fd,
                       answer ? json{{"answer", *answer}} : json{{"error", answer.error().text()}});
    } catch (const json::exception& e) {
      good = send_line(fd, {{"error", e.what()}});
    }
  }
  post.end_nodes();
  if (!post.raw().empty()) remove_raw(post.raw());
  ::close(fd);
  return {};
}

}  // namespace feign::discover
