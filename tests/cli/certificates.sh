# shellcheck shell=bash
# Certificates for the servers of a script.  After lib.sh, in the directory that they are to be in:
#   . "$(dirname "$0")/certificates.sh"
# skips the test if openssl is not installed.
: "${tmp:?lib.sh comes first}"
need openssl

# certificate NAME CA DAYS EXTENSIONS...: NAME.pem and NAME.key, issued by CA, which may be itself.
certificate() {
  local name=$1 by=(-CA "$2.pem" -CAkey "$2.key" -CAcreateserial) days=$3
  [[ $1 != "$2" ]] || by=(-key "$1.key")
  shift 3
  openssl req -newkey rsa:2048 -nodes -keyout "$name.key" -out "$name.csr" -subj "/CN=$name" 2>/dev/null
  openssl x509 -req -in "$name.csr" "${by[@]}" -days "$days" -extfile <(printf '%s\n' "$@") \
    -out "$name.pem" 2>/dev/null
}
