#!/usr/bin/env bash
# The recipes for CI services: each deploys under the lock and gives it back, also if the deployment fails; and does not
# deploy if it cannot have the lock.  The CronJob of Kubernetes reads its Secret.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/recipe.sh"
need python3
python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"

prod_is_redis
export DLOCK_BACKEND=prod
executable deploy.sh <<'SH'
#!/bin/sh
dlock run -b prod -qn -k deploy -- true
[ $? = 75 ] || [ "${DLOCK_SUPERVISORS-}" ] || touch unlocked  # a nested run borrows the lock
dlock show -b prod deploy | grep Label >label
touch deployed
exit ${FAILS-0}
SH
cat >steps.py <<'PY'
# Runs the steps of a CI service, each as that service would: steps.py SERVICE <RECIPE
import os, re, subprocess, sys
import yaml
service, recipe = sys.argv[1], sys.stdin.read().replace("--wait 1h", "").replace("-w 1h", "")
environment = dict(os.environ)
failed = 0
def shell(*words, **more):
    return subprocess.run(words, env=environment, **more)
if service == "github":
    environment["GITHUB_ENV"] = "github.env"
    for step in yaml.safe_load(recipe)["steps"]:
        if failed and "always()" not in step.get("if", ""):
            continue
        if "env.DLOCK_TOKEN" in step.get("if", "") and not environment.get("DLOCK_TOKEN"):
            continue
        open("github.env", "w").close()
        failed = shell("bash", "-e", "-c", step["run"]).returncode or failed
        environment.update(line.split("=", 1) for line in open("github.env").read().split("\n") if line)
elif service == "gitlab":
    job = yaml.safe_load(recipe)["deploy"]
    failed = shell("bash", "-eo", "pipefail", "-c", "\n".join(job["script"])).returncode
    shell("bash", "-c", "\n".join(job["after_script"]))
elif service == "jenkins":
    environment.update(re.findall(r"environment { (\w+) = '(.*)' }", recipe))
    recipe = re.sub(r"' \+\s+'", "", recipe)
    variable, code = re.search(r"env\.(\w+) = sh\(returnStdout: true,\s*script: '(.*)'\)\.trim\(\)", recipe).groups()
    first = shell("sh", "-xe", "-c", code, stdout=subprocess.PIPE, text=True)
    environment[variable] = first.stdout.strip()
    build, after = re.findall(r"sh '(.*?)'", recipe)
    failed = first.returncode or shell("sh", "-xe", "-c", build).returncode
    if environment[variable]:
        shell("sh", "-xe", "-c", after)
else:
    failed = shell("sh", "-c", recipe.replace("-w 20m", "")).returncode
sys.exit(failed)
PY

export CI_JOB_URL=https://ci.example/job/7 BUILD_URL=https://ci.example/job/7 GITHUB_WORKFLOW=deploy GITHUB_RUN_ID=7
for service in github gitlab jenkins ci-one-step; do
  for fails in 0 3; do
    rm -f deployed unlocked
    got=0
    FAILS=$fails python3 steps.py $service < <(recipe $service) >said 2>&1 || got=$?
    assert_equal "$fails" "$got" "status of $service: $(<said)"
    [[ -e deployed ]] || fail "$service does not deploy: $(<said)"
    [[ ! -e unlocked ]] || fail "$service deploys without the lock"
    assert_contains "$(<label)" 7 "what waiters see of $service"
    is_free deploy || fail "$service keeps the lock: $(<said)"
  done
  rm -f deployed
  token=$(dlock acquire -b prod -k deploy --ttl 10m)
  got=0
  DLOCK_WAIT=0 python3 steps.py $service < <(recipe $service) >said 2>&1 || got=$?
  assert_equal 75 "$got" "status of $service while the lock is held: $(<said)"
  [[ ! -e deployed ]] || fail "$service deploys while another has the lock"
  DLOCK_KEY=deploy DLOCK_TOKEN=$token dlock release -b prod -k deploy
done

# One step: others see the job, and a job that is cancelled gives the lock back.
executable deploy.sh <<'SH'
#!/bin/sh
touch deploys
exec sleep 1000
SH
recipe ci-one-step | sed 's/^/exec /' >step
sh step &
wait_until 30 test -e deploys
assert_contains "$(dlock show -b prod deploy)" "$CI_JOB_URL"
kill $!
expect_status 143 wait $!
is_free deploy || fail "the lock is held after the job was cancelled"

# Kubernetes: the Secret as kubelet mounts it, for a container that is not root's.
recipe kubernetes >cronjob.yaml
python3 - >pod.sh <<'PY'
import shlex, yaml
pod = yaml.safe_load(open("cronjob.yaml"))["spec"]["jobTemplate"]["spec"]["template"]["spec"]
box, = pod["containers"]
assert box["volumeMounts"] == [{"name": pod["volumes"][0]["name"], "mountPath": "/etc/dlock"}]
context = pod["securityContext"]
print(f'mode={pod["volumes"][0]["secret"]["defaultMode"]:o} user={context["runAsUser"]} group={context["fsGroup"]}')
print("command=(" + shlex.join(box["command"] + box["args"]) + ")")
PY
# shellcheck source=/dev/null
. ./pod.sh
if ((EUID == 0)); then
  mkdir -p secret/..data
  sed "s,$HOME/redis.password,$tmp/secret/redis.password," "$HOME/.config/dlock/config.json" >secret/..data/config.json
  cp "$HOME/redis.password" secret/..data/
  chgrp "${group:?}" secret/..data/*
  chmod "${mode:?}" secret/..data/*
  ln -s ..data/config.json ..data/redis.password secret/
  executable import.sh <<<'#!/bin/sh'$'\n''touch /work/imported'
  sed -i "s,/work,$tmp/work," import.sh
  install -d -m 777 work
  chmod 711 "$tmp"
  rm bin/dlock
  cp -- "$DLOCK" bin/dlock
  DLOCK_CONFIG=$tmp/secret/config.json setpriv --reuid "${user:?}" --regid "$user" --groups "$group" \
    "${command[@]:?}" 2>err || fail "the container ended with $?: $(<err)"
  [[ -e work/imported ]] || fail "the job did not run"
fi
