// The functions of libpq that the connection needs, loaded when they are first asked for.
#pragma once

#include <libpq-fe.h>

#include "core/result.hpp"
#include "util/dynamic_library.hpp"

namespace dlock::postgres {

struct Library : util::DynamicLibrary {
  using DynamicLibrary::DynamicLibrary;

  decltype(&::PQbackendPID) PQbackendPID = find("PQbackendPID");
  decltype(&::PQclear) PQclear = find("PQclear");
  decltype(&::PQconninfo) PQconninfo = find("PQconninfo");
  decltype(&::PQconninfoFree) PQconninfoFree = find("PQconninfoFree");
  decltype(&::PQconnectPoll) PQconnectPoll = find("PQconnectPoll");
  decltype(&::PQconnectStartParams) PQconnectStartParams = find("PQconnectStartParams");
  decltype(&::PQconnectionNeedsPassword) PQconnectionNeedsPassword =
      find("PQconnectionNeedsPassword");
  decltype(&::PQconsumeInput) PQconsumeInput = find("PQconsumeInput");
  decltype(&::PQenterPipelineMode) PQenterPipelineMode = find("PQenterPipelineMode");
  decltype(&::PQerrorMessage) PQerrorMessage = find("PQerrorMessage");
  decltype(&::PQfinish) PQfinish = find("PQfinish");
  decltype(&::PQflush) PQflush = find("PQflush");
  decltype(&::PQgetResult) PQgetResult = find("PQgetResult");
  decltype(&::PQgetisnull) PQgetisnull = find("PQgetisnull");
  decltype(&::PQgetlength) PQgetlength = find("PQgetlength");
  decltype(&::PQgetvalue) PQgetvalue = find("PQgetvalue");
  decltype(&::PQisBusy) PQisBusy = find("PQisBusy");
  decltype(&::PQnfields) PQnfields = find("PQnfields");
  decltype(&::PQntuples) PQntuples = find("PQntuples");
  decltype(&::PQpipelineSync) PQpipelineSync = find("PQpipelineSync");
  decltype(&::PQresultErrorField) PQresultErrorField = find("PQresultErrorField");
  decltype(&::PQresultStatus) PQresultStatus = find("PQresultStatus");
  decltype(&::PQsendQueryParams) PQsendQueryParams = find("PQsendQueryParams");
  decltype(&::PQserverVersion) PQserverVersion = find("PQserverVersion");
  decltype(&::PQsetErrorVerbosity) PQsetErrorVerbosity = find("PQsetErrorVerbosity");
  decltype(&::PQsetNoticeReceiver) PQsetNoticeReceiver = find("PQsetNoticeReceiver");
  decltype(&::PQsetSingleRowMode) PQsetSingleRowMode = find("PQsetSingleRowMode");
  decltype(&::PQsetnonblocking) PQsetnonblocking = find("PQsetnonblocking");
  decltype(&::PQsocket) PQsocket = find("PQsocket");
  decltype(&::PQsslInUse) PQsslInUse = find("PQsslInUse");
  decltype(&::PQstatus) PQstatus = find("PQstatus");
};

/// Stays loaded from then on.  May be called by any thread.  Errc::unsupported, with what the
/// linker says and what to install, if it cannot be had.
Result<const Library*> load_library();

}  // namespace dlock::postgres
