#include "backends/registry.hpp"
#include "cli/app.hpp"

int main(int argc, char** argv) {
  return dlock::cli::run_main(argc, argv, dlock::builtin_backends());
}
