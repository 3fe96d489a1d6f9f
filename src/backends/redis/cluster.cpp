#include "backends/redis/cluster.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <set>

#include "backends/redis/reply.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"

namespace dlock::redis {

namespace {

// FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/): against mistakes, not malice.
std::string hash_of(const std::vector<Address>& addresses) {
  std::set<std::string> names;
  for (const Address& address : addresses) names.insert(address.shown + '\n');
  std::uint32_t hash = 2'166'136'261;
  for (const std::string& name : names) {
    for (const char byte : name) hash = (hash ^ static_cast<unsigned char>(byte)) * 16'777'619;
  }
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", hash);
  return text.data();
}

// See Cluster::ranks().
std::vector<unsigned> ranks_of(const std::vector<Address>& addresses) {
  std::vector<unsigned> nodes(addresses.size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::sort(nodes.begin(), nodes.end(), [&](unsigned one, unsigned other) {
    return addresses[one].shown < addresses[other].shown;
  });
  std::vector<unsigned> out(nodes.size());
  for (unsigned rank = 0; rank < nodes.size(); ++rank) out[nodes[rank]] = rank;
  return out;
}

}  // namespace

Cluster::Cluster(const std::vector<Address>& addresses, const std::string& prefix)
    : list_(addresses.size() == 1 ? "" : hash_of(addresses)), ranks_(ranks_of(addresses)) {
  for (const Address& address : addresses) {
    workers_.push_back(std::make_unique<Worker>(address, prefix, addresses.size() > 1));
  }
  if (size() == 1) return;
  answered_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

Cluster::~Cluster() {
  if (stop_) eventfd_write(stop_.get(), 1);
  for (const auto& worker : workers_) {
    {
      const std::lock_guard lock(worker->mutex);
      worker->stopping = true;
      worker->tasks.clear();
    }
    worker->news.notify_all();
    if (worker->thread.joinable()) worker->thread.join();
  }
}

std::vector<unsigned> Cluster::all() const {
  std::vector<unsigned> out;
  for (unsigned node = 0; node < size(); ++node) out.push_back(node);
  return out;
}

unsigned Cluster::ranked(unsigned rank) const {
  const auto it = std::find(ranks_.begin(), ranks_.end(), std::min(rank, size() - 1));
  return static_cast<unsigned>(it - ranks_.begin());
}

bool Cluster::has_backlog(unsigned node) const {
  const Worker& worker = *workers_[node];
  const std::lock_guard lock(worker.mutex);
  return worker.busy && !worker.tasks.empty();
}

void Cluster::wait_for_stragglers(Deadline deadline) const {
  for (const auto& worker : workers_) {
    std::unique_lock lock(worker->mutex);
    worker->news.wait_until(lock, deadline, [&] { return !worker->busy && worker->tasks.empty(); });
  }
}

// Whoever runs these servers must hear of it, also where a majority is there without it.
void Cluster::note(unsigned node, const Error& error) {
  if (!is_replica(error) || workers_[node]->is_known_replica.exchange(true)) return;
  util::log(util::Level::warning,
            error.message + "; redlock needs independent masters, so it does not count");
}

void Cluster::post(unsigned node, Task task) {
  Worker& worker = *workers_[node];
  {
    const std::lock_guard lock(worker.mutex);
    worker.tasks.push_back(std::move(task));
  }
  if (!worker.thread.joinable()) worker.thread = std::thread([&worker] { work(worker); });
  worker.news.notify_all();
}

void Cluster::work(Worker& worker) {
  std::unique_lock lock(worker.mutex);
  for (;;) {
    worker.news.wait(lock, [&] { return worker.stopping || !worker.tasks.empty(); });
    if (worker.stopping) return;
    const Task task = std::move(worker.tasks.front());
    worker.tasks.pop_front();
    worker.busy = true;
    lock.unlock();
    task(worker.node);
    lock.lock();
    worker.busy = false;
    worker.news.notify_all();
  }
}

void Cluster::notify() const { eventfd_write(answered_.get(), 1); }

Cluster::End Cluster::wait(Deadline deadline, Cancel cancel, int also) const {
  std::array<pollfd, 3> fds{
      {{answered_.get(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}, {also, POLLIN, 0}}};
  if (util::poll(fds, deadline) == 0) return End::deadline;
  eventfd_t count = 0;
  if (fds[0].revents != 0) eventfd_read(answered_.get(), &count);
  if (fds[1].revents != 0) return End::cancelled;
  return End::enough;
}

}  // namespace dlock::redis
