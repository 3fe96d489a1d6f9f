// The texts of texts/*.sql.
#pragma once

#include "backends/sql/database.hpp"

namespace dlock::mysql {

extern const sql::Texts kTexts;

}  // namespace dlock::mysql
