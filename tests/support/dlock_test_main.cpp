#include "cli/app.hpp"
#include "support/test_registry.hpp"

int main(int argc, char** argv) {
  return dlock::cli::run_main(argc, argv, dlock::test::test_backends());
}
