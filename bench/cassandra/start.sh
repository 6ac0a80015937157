#!/bin/bash
# Starts one node of Apache Cassandra in the foreground, bringing it from Maven Central the first time.
#
#   start.sh CACHE_DIR DATA_DIR ADDRESS PORT HEAP
#
# Configuration: what ships with Cassandra (periodic commit log, synced every 10 s), large batches and materialized views allowed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$1 data=$2 address=$3 port=$4 heap=$5

mkdir -p "$cache" "$data"
if [ ! -s "$cache/classpath" ]; then
    cp "$here/pom.xml" "$cache/pom.xml"
    (cd "$cache" && mvn -q dependency:build-classpath -Dmdep.outputFile=classpath.new && mv classpath.new classpath) >&2
fi
classpath=$(cat "$cache/classpath")

mkdir -p "$data/conf"
cat > "$data/conf/cassandra.yaml" <<YAML
cluster_name: Bench
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
data_file_directories: [ $data/data ]
commitlog_directory: $data/commitlog
hints_directory: $data/hints
saved_caches_directory: $data/saved_caches
cdc_raw_directory: $data/cdc_raw
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [ { seeds: "$address:7000" } ]
listen_address: $address
rpc_address: $address
start_native_transport: true
native_transport_port: $port
storage_port: 7000
endpoint_snitch: SimpleSnitch
batch_size_fail_threshold: 50MiB
materialized_views_enabled: true
YAML
cat > "$data/conf/logback.xml" <<XML
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>$data/system.log</file>
    <encoder><pattern>%-5level %d %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
XML

# What Cassandra 5 needs opened of Java 17 (its conf/jvm17-server.options).
opens=()
for module in java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch java.base/java.lang.ref \
    java.base/java.lang.reflect java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry \
    java.rmi/sun.rmi.server java.sql/java.sql jdk.unsupported/sun.misc; do
    opens+=(--add-exports "$module=ALL-UNNAMED")
done
for module in java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.io \
    java.base/java.nio java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic \
    java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module \
    java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/sun.nio.ch \
    jdk.management/com.sun.management.internal; do
    opens+=(--add-opens "$module=ALL-UNNAMED")
done

exec java "-Xms$heap" "-Xmx$heap" -XX:+UseG1GC "${opens[@]}" -Djdk.attach.allowAttachSelf=true \
    "-javaagent:$(tr ':' '\n' <<<"$classpath" | grep /jamm)" \
    "-Dcassandra.config=file://$data/conf/cassandra.yaml" "-Dcassandra.storagedir=$data" \
    "-Dlogback.configurationFile=$data/conf/logback.xml" -Dcassandra-foreground=yes \
    -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.superuser_setup_delay_ms=0 \
    -Dcassandra.ring_delay_ms=100 -cp "$data/conf:$classpath" org.apache.cassandra.service.CassandraDaemon
