#!/usr/bin/env bash
# What dlock doctor finds wrong with ZooKeeper servers.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
. "$(dirname "$0")/doctor.sh"
cd "$tmp"
unset DLOCK_BACKEND

# One server, whose sessions are too short; nothing is there yet, or afterwards.
start_zk one maxSessionTimeout=4000 maxClientCnxns=20
doctor 0 -b "${zk_url[one]}"
finds ok zookeeper-server '3.'
finds ok zookeeper-round-trip
finds warn zookeeper-timeout 'asked for 30s, got 4s'
finds warn zookeeper-connections 'maxClientCnxns 20'
finds note zookeeper-user none
finds ok outage 'TTL 4s: a job survives an outage of 1.6s'
finds warn zookeeper-ensemble '1 server'
finds ok try-force-release
finds ok try-done-mark
assert_equal zookeeper "$(zk one ls /)" "the nodes"
doctor 0 -b "${zk_url[one]}" --ttl 4s
finds ok zookeeper-timeout 'a TTL of 4s'
doctor 1 -b "${zk_url[one]}/app"
finds FAIL zookeeper-chroot 'no node /app'
doctor 1 -b "${zk_url[one]}/app/jobs"
at="zkCli.sh -server 127.0.0.1:${zk_port[one]}"
advises "$at create /app; $at create /app/jobs"
finds_no try-acquire
zk one create /app
doctor 0 -b "${zk_url[one]}/app"
finds ok try-done-mark

# Without more than one four-letter word; a user, and a root that he may not use.
start_zk mute 4lw.commands.whitelist=ruok
(umask 077 && echo app:sesame >auth)
zk mute --auth other:secret create /dlock
zk mute --auth other:secret set-acl /dlock auth::cdrwa
doctor 77 -b "${zk_url[mute]}?auth_file=$tmp/auth"
finds ok zookeeper-user app
finds_no zookeeper-connections
finds FAIL try-acquire 'no permission'
assert_lacks "$(<out)" sesame "the output"

# Of two different ensembles.
doctor 1 -b "${zk_url[one]},127.0.0.1:${zk_port[mute]}"
finds FAIL zookeeper-ensembles 'belongs to another ensemble than'

# An ensemble of two on one machine, of which the URL names one; and one that is down.
start_zk_ensemble a b
doctor 0 -b "${zk_url[a]}"
finds warn zookeeper-ensemble '2 servers'
finds warn zookeeper-machines 'two servers are on 127.0.0.1'
finds note zookeeper-url 'names 1 of 2 servers'
sed -i 's/^server.1=127.0.0.1/server.1=localhost/' "${zk_dir[a]}/zoo.cfg"  # another name for itself
restart_zk a
wait_until 60 zk_serves b
doctor 0 -b "${zk_url[a]},127.0.0.1:${zk_port[b]}"
finds_no zookeeper-ensembles
doctor 0 -b "${zk_url[a]},127.0.0.1:1"
finds warn zookeeper-connect 'zookeeper 127.0.0.1:1: '
finds ok try-release
pause_zk b
doctor 69 -b "${zk_url[b]}" --connect-timeout 500ms
finds FAIL zookeeper-connect
resume_zk b
