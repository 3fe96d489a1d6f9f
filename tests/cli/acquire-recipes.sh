#!/usr/bin/env bash
# The recipes of the man page, FOR SCRIPTS, do what they are for: each has the lock while it deploys, and gives it
# back, also if that fails; and does not deploy if it cannot have the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need dash bash zsh fish python3

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
mkdir bin
ln -s "$DLOCK" bin/dlock
PATH=$tmp/bin:$PATH

# recipe.0.sh, recipe.6.GitHub-Actions and so on: their numbers and headings.
python3 - "$TEST_SOURCE/man/dlock.1" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
section = text[text.index('\n.SH FOR SCRIPTS\n') + 1:]
section = section[:section.index('\n.SH ', 1)]
heading, count = 'sh', 0
for part in re.findall(r'^\.SS [^\n]*$|^\.nf\n.*?^\.fi$', section, re.M | re.S):
    if part.startswith('.SS'):
        heading = part[4:].strip('"').replace('\\-', '-').replace(' ', '-')
        continue
    lines = [line for line in part.split('\n') if not line.startswith('.')]
    recipe = '\n'.join(lines).replace('\\-', '-').replace('\\&', '').replace('\\(aq', "'") + '\n'
    assert '\\' not in recipe, recipe
    open(f'recipe.{count}.{heading}', 'w').write(recipe)
    count += 1
PY
for step in build deploy; do
  cat >$step.sh <<SH
#!/bin/sh
dlock run -qn -k deploy -- true
[ \$? = 75 ] || touch unlocked
touch $step.ran
exit \${FAILS-0}
SH
done
chmod +x build.sh deploy.sh

cat >steps.py <<'PY'
# Runs the steps of a CI service, each as that service would: steps.py SERVICE RECIPE
import os, re, subprocess, sys
service, name = sys.argv[1:]
recipe = open(name).read()
environment = dict(os.environ)
failed = 0
def shell(*words, **more):
    return subprocess.run(words, env=environment, **more)
def steps(of):  # the items of a YAML list of commands
    return re.findall(r'^ *- (.*)$', re.search(rf'^{of}:\n((?: .*\n)+)', recipe, re.M).group(1), re.M)
if service == 'github':
    environment['GITHUB_ENV'] = 'github.env'
    for step in re.split(r'^- ', recipe, flags=re.M)[1:]:
        code = re.search(r'run: (?:\|\n)?(.*)', step, re.S).group(1)
        if failed and 'if: always()' not in step:
            continue
        open('github.env', 'w').close()
        status = shell('bash', '-e', '-c', code).returncode
        failed = failed or status
        environment.update(line.split('=', 1) for line in open('github.env').read().split('\n') if line)
elif service == 'gitlab':
    failed = shell('bash', '-eo', 'pipefail', '-c', '\n'.join(steps('script'))).returncode
    shell('bash', '-c', '\n'.join(steps('after_script')))
else:
    environment.update(re.findall(r"environment { (\w+) = '(.*)' }", recipe))
    variable, code = re.search(r"env\.(\w+) = sh\(returnStdout: true,\s*script: '(.*)'\)\.trim\(\)", recipe).groups()
    first = shell('sh', '-xe', '-c', code, stdout=subprocess.PIPE, text=True)
    environment[variable] = first.stdout.strip()
    build, after = re.findall(r"sh '(.*?)'", recipe)
    failed = first.returncode or shell('sh', '-xe', '-c', build).returncode
    shell('sh', '-xe', '-c', after)
sys.exit(failed)
PY

# tries RECIPE PROGRAM...: it deploys under the lock.  If its steps fail, or if it does not get the lock, it is as it
# should be, too.
tries() {
  local recipe=$1 fails got
  shift
  for fails in 0 3; do
    rm -f ./*.ran unlocked
    got=0
    FAILS=$fails "$@" "$recipe" >said 2>&1 || got=$?
    assert_equal "$fails" "$got" "status of $* $recipe: $(<said)"
    [[ -e deploy.ran ]] || fail "$* $recipe does not deploy"
    [[ ! -e unlocked ]] || fail "$* $recipe deploys without the lock"
    wait_until 30 is_free deploy
  done
  rm -f ./*.ran
  hold_deploy
  got=0
  "$@" "$recipe" >said 2>&1 || got=$?
  assert_equal 75 "$got" "status of $* $recipe while the lock is held: $(<said)"
  [[ ! -e deploy.ran ]] || fail "$* $recipe deploys while another has the lock"
  rcli a del dlock:deploy >/dev/null
}
hold_deploy() { "$DLOCK" acquire -k deploy --ttl 10m >/dev/null; }

# Where a recipe waits for an hour, it would.
export DLOCK_WAIT=0
sed -i 's/--wait 1h/--wait 0/' recipe.*
for shell in dash bash zsh; do
  tries recipe.0.sh $shell
  tries recipe.1.With---while $shell
  tries recipe.3.With---ttl $shell
  { echo 'set -e'; cat recipe.4.When-dlock-acquire-fails; echo 'trap "dlock release -k deploy" EXIT; ./deploy.sh'; } >recipe
  tries recipe $shell
done
tries recipe.2.With---while bash
{ cat recipe.5.fish; echo './deploy.sh'; } >recipe
tries recipe fish --no-config
tries recipe.6.GitHub-Actions python3 steps.py github
tries recipe.7.GitLab-CI python3 steps.py gitlab
tries recipe.8.Jenkins python3 steps.py jenkins
[[ ! -e recipe.9 ]] || fail "there is a recipe more"
