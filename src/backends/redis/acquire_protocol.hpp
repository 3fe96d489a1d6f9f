// One acquire() on one Redis server or several, without I/O: which server is asked what, and when.
// The driver sends the requests, feeds the answers in as they come, and tells the time.
//
// Queue server.  A waiter asks one server first, and waits in its queue: the first in an order that
//   all clients share, unless it does not answer.  A second one is asked when it is a moment late,
//   so that a server that is down costs little.  That clients have different queue servers lets no
//   two in, since the votes decide; but the order of coming holds only within one queue.
// Votes.  Only a waiter that its queue server has granted the lock asks the others.  That server
//   gives the fencing token, and each vote writes it.  The lock is held when a majority has the
//   same token, and of slots the same number.  Two majorities share a server, and that one has
//   granted the lock to one of the two.  A server does not vote for a token that is not larger than
//   all that it knows of, unless this waiter has it: so tokens grow from holder to holder.
// Rounds.  Each question to a queue server, and each vote, has a round.  A server keeps it with the
//   grant.  A late request of an earlier round changes nothing, and to undo a round undoes the
//   earlier ones.  So the waiter need not know whether a request that was not answered has arrived.
// Front round.  What a queue server says may be stale: a release has not reached it, or a holder
//   that died had a majority elsewhere.  So the first of its queue votes on all servers when its
//   timer, not a message, has woken it and the queue server, also one that it asks for the first
//   time, refuses.
// Silence.  Nobody tells a sleeper that its queue server does not answer any more.  It asks that at
//   least every three seconds (ask.lua), and a moment later the next server, where it has its old
//   place, since it says how long it has waited.  A server that does not answer after its grant has
//   voted with that.
//
// The algorithm is https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ with tokens
// and a queue.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/calls.hpp"
#include "backends/redis/slots.hpp"
#include "backends/redis/votes.hpp"
#include "util/clock.hpp"

namespace dlock::redis {

class AcquireProtocol {
 public:
  struct Options {
    std::vector<unsigned> order;  // the servers, in the order in which they are asked
    Millis ttl{0};
    unsigned slots = 0;  // how many numbers there are, one of which is to be ours; 0: it needs none
    bool waits = true;   // joins a queue if it is refused
    Millis round_within{0};  // of several servers, and to connect; a single one has its deadlines
    std::uint64_t seed = 0;
  };
  explicit AcquireProtocol(Options options);

  enum class State : std::uint8_t {
    asking,     // the queue server
    voting,     // the servers
    sleeping,   // refused: until wake_at(), or a message
    resting,    // has not begun; or granted by too few, which was undone: until wake_at()
    granted,    // by so many as are needed
    conflict,   // held in other_mode(), which cannot be mixed with ours
    duplicate,  // the servers of duplicate() are the same
    given_up,   // this waiter was broken; another one has to ask
  };

  /// A request to one server.
  struct Order {
    enum class Kind : std::uint8_t {
      ask,
      vote,
      undo,
      leave_queue,  // it holds the lock without the queue server
    };
    Kind kind = Kind::ask;
    unsigned server = 0;
    unsigned round = 0;
    bool join = false;        // ask
    std::uint64_t token = 0;  // vote
    unsigned number = 0;      // vote, of slots
    bool quiet = false;       // undo
  };

  /// Asks for the lock: at the start, and when the driver wants to before wake_at().
  void ask(Deadline now);
  /// The requests to be sent now.
  std::vector<Order> take_orders() { return std::exchange(orders_, {}); }
  bool has_orders() const { return !orders_.empty(); }

  /// The answer to this request still counts.
  bool awaits(const Order& order) const;
  void answered(const Order& order, const AskAnswer& answer, Deadline now);
  void answered(const Order& order, const VoteAnswer& answer, Deadline now);
  /// It was not answered: the connection was lost, or the server refused it with an error.
  void failed(const Order& order, Deadline now);
  /// A message on the waiter's channel, from this server.
  void heard(unsigned server, const Message& message, Deadline now);

  /// When tick() is to be called next.
  Deadline wake_at() const;
  void tick(Deadline now);

  /// Votes on all servers although the queue server refuses: before "busy" is said on its word
  /// alone.  False: that has been done, or other waiters come first.
  bool start_last_round(Deadline now);

  State state() const { return state_; }
  bool is_asking() const { return state_ == State::asking || state_ == State::voting; }
  /// Nothing happens until wake_at(), or a message.
  bool is_idle() const { return state_ == State::sleeping || state_ == State::resting; }
  /// Of the last round; when granted, that of the grant.
  unsigned round() const { return round_; }
  std::uint64_t token() const { return token_; }
  unsigned number() const { return number_; }
  /// When the first request of this round was sent: the servers count the ttl from later instants.
  Deadline asked_at() const { return asked_at_; }
  /// What the queue server has said last; sleeping.
  const AskAnswer& refusal() const { return refusal_; }
  unsigned queue_server() const { return queue_server_; }
  const std::string& other_mode() const { return other_mode_; }
  std::pair<unsigned, unsigned> duplicate() const { return duplicate_; }
  /// The servers that may have something of this waiter.
  const std::vector<bool>& asked_servers() const { return was_asked_; }
  /// What the servers have answered to the last vote.
  const Votes& votes() const { return votes_; }

  /// It does not hear messages: it asks more often.
  void set_polling() { polls_ = true; }

 private:
  using Vote = Votes::Vote;

  unsigned servers() const { return static_cast<unsigned>(options_.order.size()); }
  bool single() const { return servers() == 1; }
  Millis chance(Millis from, Millis to);

  void begin_to_ask(Deadline now, bool by_timer, std::optional<unsigned> first);
  bool ask_next(Deadline now, std::optional<unsigned> first);
  void no_answer(Deadline now);
  bool asked(const Order& order) const;
  void question_failed(const Order& order, Deadline now);
  void granted_by(const Order& order, const AskAnswer& answer, Deadline now);
  void refused_by(unsigned server, const AskAnswer& answer, Deadline now);
  void sleep(Deadline now);

  void begin_front_round(Deadline now);
  void begin_votes(Deadline now);
  void ask_for_votes(Deadline now);
  void judge(Deadline now);
  void vote_again(Deadline now);
  void leave_queues();
  void give_earlier_numbers_back();
  unsigned free_number() const;
  void round_failed(Deadline now);
  void undo();
  void undo_late(const Order& order);
  void rest(Deadline now, Millis from, Millis to);

  const Options options_;
  std::minstd_rand random_;
  State state_ = State::resting;
  std::vector<Order> orders_;
  std::vector<bool> was_asked_;             // of each server, by this waiter
  std::vector<Deadline> asked_last_until_;  // of each server that did not answer a question
  std::vector<Millis> answer_took_;         // of each server, the last time
  Deadline wake_at_ = kNever;
  bool wakes_by_timer_ = false;
  bool polls_ = false;

  // This round.
  unsigned round_ = 0;
  Deadline asked_at_{};
  bool asked_by_timer_ = false;
  struct Question {
    unsigned server = 0;
    unsigned round = 0;
    Deadline asked_at{};
    bool failed = false;
  };
  std::vector<Question> questions_;  // to queue servers, since it began to ask
  Deadline answer_until_ = kNever;
  Deadline ask_next_at_ = kNever;
  Deadline message_at_ = kNever;  // a message that came while it asked: ask again then

  // The votes.
  bool is_front_round_ = false;
  bool had_last_round_ = false;
  std::optional<unsigned> grantor_;  // the queue server that has granted it in this round
  Votes votes_;
  std::uint64_t token_ = 0;
  std::uint64_t highest_ = 0;  // token of others that this vote has met
  unsigned number_ = 0;
  std::vector<std::string> taken_;  // of each server: the numbers that others have there
  unsigned conflicts_ = 0;          // servers that have the lock in another mode
  bool is_given_up_ = false;        // a server says that this waiter was broken
  unsigned repeats_ = 0;            // of this vote
  unsigned splits_ = 0;  // rounds in a row that a queue server has granted and the others have not

  // What the queue server has said.
  bool joins_ = false;
  unsigned queue_server_;  // whose answer to a question has counted last
  AskAnswer refusal_;
  std::uint64_t floor_ = 0;  // no token up to this one is new
  std::string other_mode_;
  std::pair<unsigned, unsigned> duplicate_;
};

}  // namespace dlock::redis
