package helenus.tests;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.metadata.schema.SchemaChangeListener;
import java.net.InetSocketAddress;
import java.time.Duration;

/**
 * Checks a CQL server through the Apache Java driver 4. usage: Main HOST PORT
 *
 * <p>Prints a line for each check, {@code ok NAME} or {@code FAIL NAME: why}, and exits 1 if one failed.
 */
public final class Main {
  static final String KEYSPACE = "driver_java";

  /** What a check does; anything thrown fails it. */
  interface Body {
    void run() throws Exception;
  }

  private static int passed;
  private static int failed;
  private static InetSocketAddress address;

  private Main() {}

  public static void main(String[] args) {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    address = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
    for (String[] way :
        new String[][] {
          {"V3", "none"}, {"V4", "none"}, {"V5", "none"}, {"V4", "lz4"}, {"V4", "snappy"}, {"V5", "lz4"}
        }) {
      String prefix = way[0].toLowerCase() + " " + way[1] + " ";
      check(prefix + "create keyspace", () -> recreateKeyspace(way));
      CqlSession[] session = new CqlSession[1];
      check(prefix + "connect", () -> session[0] = connect(way, KEYSPACE, null));
      if (session[0] != null) {
        new Checks(session[0], prefix, way).all();
        session[0].close();
      }
    }
    check("drop keyspace", () -> {
      try (CqlSession session = connect(new String[] {"V4", "none"}, null, null)) {
        session.execute("DROP KEYSPACE " + KEYSPACE);
      }
    });
    System.out.println(passed + " checks passed");
    System.exit(failed == 0 ? 0 : 1);
  }

  private static void recreateKeyspace(String[] way) {
    try (CqlSession session = connect(way, null, null)) {
      session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
      session.execute("CREATE KEYSPACE " + KEYSPACE
          + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    }
  }

  /** A session; {@code way} is the protocol version and the compression. */
  static CqlSession connect(String[] way, String keyspace, SchemaChangeListener listener) {
    ProgrammaticDriverConfigLoaderBuilder config = DriverConfigLoader.programmaticBuilder()
        .withString(DefaultDriverOption.PROTOCOL_VERSION, way[0])
        .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, way[1])
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "QUORUM")
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(30))
        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(30))
        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(30))
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(50));
    var builder = CqlSession.builder().addContactPoint(address).withLocalDatacenter("datacenter1")
        .withConfigLoader(config.build());
    if (keyspace != null) {
      builder = builder.withKeyspace(keyspace);
    }
    if (listener != null) {
      builder = builder.withSchemaChangeListener(listener);
    }
    return builder.build();
  }

  static void check(String name, Body body) {
    try {
      body.run();
      passed++;
      System.out.println("ok " + name);
    } catch (Throwable e) {
      failed++;
      System.out.println("FAIL " + name + ": " + String.valueOf(e).replace('\n', ' '));
      e.printStackTrace();
    }
    System.out.flush();
  }
}
