#!/bin/bash
# Starts one of three brokers of Apache Kafka in the foreground, bringing it from Maven Central the first time.
#
#   start.sh CACHE_DIR DATA_DIR NUMBER
#
# Broker 1, 2 or 3 listens at 127.0.0.1:19391 to 19393, and is a controller as well. Topics have two replicas in sync at least, and keep all
# records; the rest of the configuration is Kafka's own, so a record is in the page caches of the brokers when it is acknowledged.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$1 data=$2 number=$3

mkdir -p "$cache" "$data"
(
    flock 9
    if [ ! -e "$cache/done" ]; then
        cp "$here/../../tests/kafka_log/brokers/pom.xml" "$cache/pom.xml"
        (cd "$cache" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib) >&2
        touch "$cache/done"
    fi
) 9>"$cache/lock"

cat > "$data/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=$number
controller.quorum.voters=1@127.0.0.1:19491,2@127.0.0.1:19492,3@127.0.0.1:19493
listeners=PLAINTEXT://127.0.0.1:1939$number,CONTROLLER://127.0.0.1:1949$number
advertised.listeners=PLAINTEXT://127.0.0.1:1939$number
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
min.insync.replicas=2
log.retention.ms=-1
PROPERTIES

java=(java -Xms512m -Xmx512m -cp "$cache/lib/*")
"${java[@]}" kafka.tools.StorageTool format --cluster-id AAAAAAAAQACAAAAAAAAAAA --config "$data/server.properties"
exec "${java[@]}" kafka.Kafka "$data/server.properties"
