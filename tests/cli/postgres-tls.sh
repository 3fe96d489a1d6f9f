#!/usr/bin/env bash
# postgres by TLS: where the server has it, without being asked for; never without it once it was asked for; with a
# certificate of ours where the user needs one.  Whom the URL does not trust gets no connection.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
. "$(dirname "$0")/certificates.sh"
cd "$tmp"
product=postgres
secret=sesame
. "$TEST_SOURCE/tests/cli/refusals.sh"
export DLOCK_PASSWORD_FILE=$postgres_password_file HOME=$tmp

certificate ca ca 2 basicConstraints=critical,CA:TRUE
certificate server ca 2 subjectAltName=DNS:localhost,IP:127.0.0.1
certificate other ca 2 subjectAltName=DNS:other.example
certificate app ca 2 subjectAltName=DNS:app

# with_certificate NAME: the server of this name has this certificate, and takes users named so by TLS only.
with_certificate() {
  local data=${postgres_dir[$1]}/data
  install -m 0600 "$1.pem" "$1.key" ca.pem "$data"
  chown --reference="$data/PG_VERSION" "$data"/*.pem "$data"/*.key
  sed -i "1i hostssl all cert all cert map=m\nhostnossl all tls all reject" "$data/pg_hba.conf"
  echo 'm app cert' >>"$data/pg_ident.conf"
  cat >>"$data/postgresql.conf" <<END
ssl = on
ssl_cert_file = '$1.pem'
ssl_key_file = '$1.key'
ssl_ca_file = 'ca.pem'
END
  restart_postgres "$1"
}
for name in server other; do
  start_postgres $name
  with_certificate $name
done
start_postgres plain
sql server "CREATE ROLE tls LOGIN PASSWORD '$secret'; CREATE ROLE cert LOGIN; GRANT app TO tls, cert"
sql server "$("$DLOCK" backends --schema postgres) GRANT ALL ON ALL TABLES IN SCHEMA public TO app"
s=127.0.0.1:${postgres_port[server]}/test
o=localhost:${postgres_port[other]}/test
plain=127.0.0.1:${postgres_port[plain]}/test

# Preferred.
for method in postgres postgres-row; do works "$method://tls@$s"; done
works "postgres://tls@$s?sslmode=prefer"
works "postgres://app@$plain"
refuses 77 'may not log in to database "test" from this host, or only over TLS' "postgres://tls@$s?sslmode=disable"

# Asked for.
for mode in require verify-ca verify-full; do
  ca="&sslrootcert=$tmp/ca.pem"
  [[ $mode != require ]] || ca=
  works "postgres://tls@$s?sslmode=$mode$ca"
  refuses 69 "sslmode=$mode in the URL asks for TLS" "postgres://app@$plain?sslmode=$mode$ca"
done
works "postgres://app@$o?sslmode=require"
works "postgres://app@$o?sslmode=verify-ca&sslrootcert=$tmp/ca.pem"
refuses 69 'does not match host name' "postgres://app@$o?sslmode=verify-full&sslrootcert=$tmp/ca.pem"
refuses 69 'certificate verify failed' "postgres://tls@$s?sslmode=verify-full&sslrootcert=$tmp/app.pem"
# Whom this machine trusts, and whom psql trusts.
refuses 69 'certificate verify failed' "postgres://tls@$s?sslmode=verify-full"
mkdir .postgresql
cp ca.pem .postgresql/root.crt
works "postgres://tls@$s?sslmode=verify-full"

# Ours.
ours="sslcert=$tmp/app.pem&sslkey=$tmp/app.key"
refuses 77 'may not log in' "postgres://cert@$s?sslmode=require"
works "postgres://cert@$s?sslmode=require&$ours"
chmod 0644 app.key
refuses 69 'private key file' "postgres://cert@$s?sslmode=require&$ours"
