// stamp FILE [MS]: waits for MS milliseconds and writes the time into FILE, as its first and last
// act.
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  timespec now;
  if (argc > 2) {
    const long ms = atol(argv[2]);
    const timespec pause{ms / 1000, ms % 1000 * 1000000};
    const int started = open(argv[1], O_CREAT | O_WRONLY, 0600);
    nanosleep(&pause, nullptr);
    clock_gettime(CLOCK_MONOTONIC, &now);
    close(started);
  } else {
    clock_gettime(CLOCK_MONOTONIC, &now);
  }
  char text[32];
  int at = sizeof text;
  text[--at] = '\n';
  for (long long n = now.tv_sec * 1000000000LL + now.tv_nsec; n > 0; n /= 10) {
    text[--at] = static_cast<char>('0' + n % 10);
  }
  const int file = open(argv[1], O_CREAT | O_WRONLY, 0600);
  const bool good = write(file, text + at, sizeof text - at) > 0;
  _exit(good ? 0 : 1);
}
