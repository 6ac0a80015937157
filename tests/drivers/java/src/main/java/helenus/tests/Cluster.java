package helenus.tests;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.metadata.NodeState;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;

/**
 * Does what it is told on standard input, against several nodes: see tests/cluster_drivers/programs.py. usage:
 * Cluster HOST PORT KEYSPACE
 */
public final class Cluster {
  private static final int WORKERS = 8;

  private final CqlSession session;
  private final PreparedStatement insert;
  private final PreparedStatement select;
  private final AtomicLong operations = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();
  private final AtomicLong worstMs = new AtomicLong();
  private final AtomicReference<String> first = new AtomicReference<>("");
  private final List<Thread> workers = new ArrayList<>();
  private volatile boolean stopped;

  private Cluster(InetSocketAddress address, String keyspace) {
    session = CqlSession.builder().addContactPoint(address).withLocalDatacenter("datacenter1").withKeyspace(keyspace)
        .withConfigLoader(DriverConfigLoader.programmaticBuilder()
            .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "QUORUM")
            // The default, 2 s, is less than it takes until a dead node's tablets are served again.
            .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(10))
            .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(10))
            .withBoolean(DefaultDriverOption.REQUEST_DEFAULT_IDEMPOTENCE, true)
            .build())
        .build();
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)");
    select = session.prepare("SELECT v FROM t WHERE k = ?");
  }

  public static void main(String[] args) throws Exception {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Cluster cluster = new Cluster(new InetSocketAddress(args[0], Integer.parseInt(args[1])), args[2]);
    System.out.println("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(cluster.run(line.split(" ")));
      System.out.flush();
    }
    System.exit(0);
  }

  private String run(String[] words) throws InterruptedException {
    switch (words[0]) {
      case "nodes":
        return String.valueOf(session.getMetadata().getNodes().values().stream()
            .filter(node -> node.getState() == NodeState.UP).count());
      case "route":
        int from = Integer.parseInt(words[1]);
        int count = Integer.parseInt(words[2]);
        for (int k = from; k < from + count; k++) {
          write(k);
        }
        for (int k = from; k < from + count; k++) {
          read(k);
        }
        return "done";
      case "load":
        for (int worker = 0; worker < WORKERS; worker++) {
          int start = 1_000_000 + worker;
          Thread thread = new Thread(() -> work(start));
          workers.add(thread);
          thread.start();
        }
        return "done";
      case "stop":
        stopped = true;
        for (Thread worker : workers) {
          worker.join();
        }
        return operations + " " + failures + " " + worstMs + " " + first.get().replace('\n', ' ');
      default:
        throw new IllegalArgumentException(words[0]);
    }
  }

  private void work(int start) {
    for (int k = start; !stopped; k += WORKERS) {
      timed(this::write, k);
      timed(this::read, k);
    }
  }

  private void timed(IntConsumer operation, int k) {
    long began = System.nanoTime();
    try {
      operation.accept(k);
    } catch (RuntimeException e) {
      failures.incrementAndGet();
      first.compareAndSet("", e.toString());
    }
    operations.incrementAndGet();
    worstMs.accumulateAndGet((System.nanoTime() - began) / 1_000_000, Math::max);
  }

  private void write(int k) {
    session.execute(insert.bind(k, k));
  }

  private void read(int k) {
    int v = session.execute(select.bind(k)).one().getInt(0);
    if (v != k) {
      throw new IllegalStateException(v + " was read for " + k);
    }
  }
}
