// The texts of texts/*.sql.
#pragma once

#include "backends/sql/database.hpp"

namespace dlock::postgres {

extern const sql::Texts kTexts;

}  // namespace dlock::postgres
