// dlock-reserved-port: a ReservedPort for shell scripts.
//
//     dlock-reserved-port
//
// Prints the number of a port and keeps it reserved until this process is killed.  The kernel kills
// it with its parent.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <exception>
#include <iostream>

#include "support/reserved_port.hpp"

int main() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;
  try {
    const dlock::test::ReservedPort port;
    std::cout << port.port() << std::endl;
    for (;;) pause();
  } catch (const std::exception& error) {
    std::cerr << "dlock-reserved-port: " << error.what() << '\n';
    return 1;
  }
}
