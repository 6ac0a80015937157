package helenus.tests;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.data.TupleValue;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.SchemaChangeListenerBase;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidConfigurationInQueryException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.TupleType;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import com.datastax.oss.driver.api.core.uuid.Uuids;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.function.BooleanSupplier;

/** The checks of one protocol version and compression. */
final class Checks {
  private final CqlSession session;
  private final String prefix;
  private final String[] way;
  private final int version;

  Checks(CqlSession session, String prefix, String[] way) {
    this.session = session;
    this.prefix = prefix;
    this.way = way;
    this.version = way[0].charAt(1) - '0';
  }

  void all() {
    check("system tables", this::systemTables);
    check("create and metadata", this::metadata);
    check("all types", this::types);
    check("nulls and empty values", this::nulls);
    check("paging", this::paging);
    check("lightweight transactions", this::lwt);
    check("batches", this::batches);
    check("counter batch", this::counterBatch);
    check("errors", this::errors);
    check("prepared again after drop", this::reprepare);
    check("select * after alter", this::alter);
    check("client timestamps", this::timestamps);
    check("named values", this::named);
    if (version >= 4) {
      check("unset values", this::unset);
      check("warnings and payload", this::warnings);
    }
    if (version >= 5) {
      check("keyspace per request", this::keyspacePerRequest);
      check("now in seconds", this::nowInSeconds);
    }
    check("tracing", this::tracing);
    check("1000 at once", this::concurrent);
    check("secondary index", this::index);
    check("schema events", this::events);
  }

  private void check(String name, Main.Body body) {
    Main.check(prefix + name, body);
  }

  private static void same(Object got, Object want) {
    if (got == null ? want != null : !got.equals(want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  private static void that(boolean condition, String words) {
    if (!condition) {
      throw new AssertionError(words);
    }
  }

  private static void until(String what, BooleanSupplier condition) throws InterruptedException {
    long deadline = System.nanoTime() + 30_000_000_000L;
    while (!condition.getAsBoolean()) {
      that(System.nanoTime() < deadline, what + ": not within 30 s");
      Thread.sleep(20);
    }
  }

  private static <T extends Throwable> T fails(Class<T> kind, Main.Body body) {
    try {
      body.run();
    } catch (Throwable e) {
      if (kind.isInstance(e)) {
        return kind.cast(e);
      }
      throw new AssertionError("got " + e + ", want " + kind.getSimpleName(), e);
    }
    throw new AssertionError("no error, want " + kind.getSimpleName());
  }

  private KeyspaceMetadata keyspace() {
    return session.getMetadata().getKeyspace(Main.KEYSPACE).orElseThrow();
  }

  private void systemTables() {
    Row row = session.execute("SELECT * FROM system.local WHERE key = 'local'").one();
    that(row.getString("release_version").startsWith("5.0"), row.getString("release_version"));
    same(session.getContext().getProtocolVersion().getCode(), version);
    same(session.getMetadata().getNodes().size(), 1);
    var node = session.getMetadata().getNodes().values().iterator().next();
    same(node.getDatacenter(), "datacenter1");
    same(node.getState().name(), "UP");
    that(session.getMetadata().getTokenMap().isPresent(), "no token map");
    that(!session.getMetadata().getTokenMap().get().getTokenRanges().isEmpty(), "no token ranges");
    that(session.checkSchemaAgreement(), "no schema agreement");
  }

  private void metadata() {
    session.execute("CREATE TYPE address (street text, zip int)");
    session.execute("CREATE TABLE users (org uuid, team int, joined timestamp, name text, motto text static, "
        + "home frozen<address>, tags set<text>, scores map<text, double>, v vector<float, 3>, "
        + "PRIMARY KEY ((org, team), joined, name)) WITH CLUSTERING ORDER BY (joined DESC, name ASC) AND comment = 'who'");
    session.execute("CREATE INDEX users_motto ON users (motto)");
    session.execute("CREATE INDEX users_tag ON users (values(tags))");
    session.refreshSchema();
    KeyspaceMetadata ks = keyspace();
    that(ks.isDurableWrites(), "durable writes");
    same(ks.getReplication().get("replication_factor"), "1");
    TableMetadata users = ks.getTable("users").orElseThrow();
    that(!users.isCompactStorage(), "compact storage");
    List<String> names = new ArrayList<>();
    users.getPrimaryKey().forEach(c -> names.add(c.getName().toString()));
    same(names, List.of("org", "team", "joined", "name"));
    same(users.getPartitionKey().size(), 2);
    same(new ArrayList<>(users.getClusteringColumns().values()), List.of(ClusteringOrder.DESC, ClusteringOrder.ASC));
    same(users.getColumns().size(), 9);
    that(users.getColumn("motto").orElseThrow().isStatic(), "motto is not static");
    same(users.getColumn("scores").orElseThrow().getType(), DataTypes.mapOf(DataTypes.TEXT, DataTypes.DOUBLE));
    same(users.getColumn("v").orElseThrow().getType(), DataTypes.vectorOf(DataTypes.FLOAT, 3));
    same(users.getOptions().get(CqlIdentifier.fromCql("comment")), "who");
    same(users.getIndexes().size(), 2);
    same(users.getIndex("users_motto").orElseThrow().getTarget(), "motto");
    same(users.getIndex("users_tag").orElseThrow().getTarget(), "values(tags)");
    UserDefinedType udt = ks.getUserDefinedType("address").orElseThrow();
    same(udt.getFieldNames().toString(), "[street, zip]");
    that(ks.describeWithChildren(false).contains("CREATE TABLE"), "describe");
    that(session.getMetadata().getKeyspace("system_schema").isPresent()
        || session.getContext().getConfig() != null, "system schema");
  }

  private void types() throws Exception {
    session.execute("CREATE TABLE everything (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, "
        + "g double, i float, j inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, s varint, "
        + "t list<text>, u set<int>, v map<text, bigint>, w frozen<map<int, frozen<list<text>>>>, x tuple<int, text>, "
        + "y frozen<address>, aa address, h duration, z vector<float, 3>)");
    TupleType tuple = DataTypes.tupleOf(DataTypes.INT, DataTypes.TEXT);
    tuple.attach(session.getContext());
    UserDefinedType address = keyspace().getUserDefinedType("address").orElseThrow();
    UdtValue high = address.newValue("High", 12);
    UdtValue low = address.newValue("Low", 13);
    Object[] values = {
      1, "plain", Long.MIN_VALUE, ByteBuffer.wrap(new byte[] {0, -1, 16}), true, LocalDate.of(2024, 2, 29),
      new BigDecimal("-12345678901234567890.0123"), -1.5e300, 0.5f, InetAddress.getByName("2001:db8::1"), (short) -32768,
      "Ἑλένη 🏺", LocalTime.of(23, 59, 59, 999_999_999), Instant.parse("2024-02-29T12:34:56.789Z"), Uuids.timeBased(),
      (byte) -128, UUID.randomUUID(), new BigInteger("-123456789012345678901234567890"), List.of("b", "a"), Set.of(1, 2, 3),
      Map.of("x", 1L), Map.of(7, List.of("p", "")), tuple.newValue(5, "five"), high, low,
      version >= 5 ? CqlDuration.newInstance(14, 3, 5_000_000_000L) : null, CqlVector.newInstance(0.5f, -1f, 2f)
    };
    String names = "k, a, b, c, d, e, f, g, i, j, l, m, n, o, p, q, r, s, t, u, v, w, x, y, aa, h, z";
    PreparedStatement insert = session.prepare(
        "INSERT INTO everything (" + names + ") VALUES (" + "?, ".repeat(values.length - 1) + "?)");
    if (version == 3) {
      // types younger than the protocol version are custom ones, which the driver cannot encode
      same(insert.getVariableDefinitions().get("e").getType(),
          DataTypes.custom("org.apache.cassandra.db.marshal.SimpleDateType"));
      same(insert.getVariableDefinitions().get("n").getType(),
          DataTypes.custom("org.apache.cassandra.db.marshal.TimeType"));
      same(insert.getVariableDefinitions().get("l").getType(),
          DataTypes.custom("org.apache.cassandra.db.marshal.ShortType"));
      same(insert.getVariableDefinitions().get("q").getType(),
          DataTypes.custom("org.apache.cassandra.db.marshal.ByteType"));
      session.execute("INSERT INTO everything (k, aa, t, u, v) VALUES (1, {street: 'Low', zip: 13}, ['b', 'a'], "
          + "{1, 2, 3}, {'x': 1})");
      updateParts();
      return;
    }
    session.execute(insert.bind(values));
    Row row = session.execute(session.prepare("SELECT " + names + " FROM everything WHERE k = ?").bind(1)).one();
    for (int i = 0; i < values.length; i++) {
      if (values[i] instanceof TupleValue) {
        same(row.getTupleValue(i).getFormattedContents(), ((TupleValue) values[i]).getFormattedContents());
      } else if (values[i] instanceof UdtValue) {
        same(row.getUdtValue(i).getFormattedContents(), ((UdtValue) values[i]).getFormattedContents());
      } else {
        same(row.getObject(i), values[i]);
      }
    }
    updateParts();
  }

  private void updateParts() {
    session.execute("UPDATE everything SET aa.zip = 99, t = t + ['z'], u = u - {1}, v['y'] = 2 WHERE k = 1");
    Row row = session.execute("SELECT aa, t, u, v FROM everything WHERE k = 1").one();
    same(row.getUdtValue(0).getInt("zip"), 99);
    same(row.getList(1, String.class), List.of("b", "a", "z"));
    same(new TreeSet<>(row.getSet(2, Integer.class)), new TreeSet<>(Set.of(2, 3)));
    same(row.getMap(3, String.class, Long.class), Map.of("x", 1L, "y", 2L));
  }

  private void nulls() {
    session.execute(session.prepare("INSERT INTO everything (k, a, m, t, c) VALUES (?, ?, ?, ?, ?)")
        .bind(2, null, "", List.of(), ByteBuffer.allocate(0)));
    Row row = session.execute("SELECT a, m, t, c FROM everything WHERE k = 2").one();
    that(row.isNull(0), "a is not null");
    same(row.getString(1), "");
    that(row.isNull(2), "an empty list must read as null");
    same(row.getByteBuffer(3).remaining(), 0);
  }

  private void paging() throws Exception {
    session.execute("CREATE TABLE pages (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO pages (k, c, v) VALUES (?, ?, ?)");
    for (int k = 0; k < 4; k++) {
      BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.UNLOGGED);
      for (int c = 0; c < 50; c++) {
        batch.addStatement(insert.bind(k, c, k + "." + c));
      }
      session.execute(batch.build());
    }
    PreparedStatement slice = session.prepare("SELECT c FROM pages WHERE k = ? AND c < ? ORDER BY c DESC");
    for (int size : new int[] {1, 3, 50, 199, 200, 201, 5000}) {
      Set<String> seen = new TreeSet<>();
      session.execute(SimpleStatement.newInstance("SELECT v FROM pages").setPageSize(size)).forEach(r -> seen.add(r.getString(0)));
      same(seen.size(), 200);
      int expected = 39;
      for (Row row : session.execute(slice.bind(2, 40).setPageSize(size))) {
        same(row.getInt(0), expected--);
      }
      same(expected, -1);
    }
    ByteBuffer state = null;
    int rows = 0;
    int pages = 0;
    do {
      ResultSet page = session.execute(SimpleStatement.newInstance("SELECT v FROM pages").setPageSize(30).setPagingState(state));
      for (int n = page.getAvailableWithoutFetching(); n > 0; n--) {
        page.one();
        rows++;
      }
      pages++;
      state = page.getExecutionInfo().getPagingState();
    } while (state != null);
    same(rows, 200);
    that(pages >= 7, pages + " pages");
  }

  private void lwt() {
    session.execute("CREATE TABLE cas (k int PRIMARY KEY, v int, w text)");
    PreparedStatement insert = session.prepare("INSERT INTO cas (k, v, w) VALUES (?, ?, ?) IF NOT EXISTS");
    that(session.execute(insert.bind(1, 1, "one")).wasApplied(), "the first insert was not applied");
    ResultSet again = session.execute(insert.bind(1, 2, "two"));
    that(!again.wasApplied(), "the second insert was applied");
    Row row = again.one();
    same(List.of(row.getInt("k"), row.getInt("v"), row.getString("w")), List.of(1, 1, "one"));
    PreparedStatement update = session.prepare("UPDATE cas SET v = ? WHERE k = ? IF v = ?");
    ResultSet refused = session.execute(update.bind(5, 1, 9));
    that(!refused.wasApplied() && refused.one().getInt("v") == 1, "wrong condition");
    that(session.execute(update.bind(5, 1, 1)).wasApplied(), "the right condition was refused");
    that(!session.execute("DELETE FROM cas WHERE k = 99 IF EXISTS").wasApplied(), "deleted what is not there");
    that(session.execute(BatchStatement.newInstance(BatchType.LOGGED,
        SimpleStatement.newInstance("UPDATE cas SET w = 'batched' WHERE k = 1 IF v = 5"),
        update(6))).wasApplied(), "the conditional batch was refused");
    row = session.execute(SimpleStatement.newInstance("SELECT v, w FROM cas WHERE k = 1")
        .setConsistencyLevel(DefaultConsistencyLevel.SERIAL)).one();
    same(List.of(row.getInt(0), row.getString(1)), List.of(6, "batched"));
  }

  private static SimpleStatement update(int v) {
    return SimpleStatement.newInstance("UPDATE cas SET v = ? WHERE k = 1", v);
  }

  private void batches() {
    session.execute("CREATE TABLE b1 (k int PRIMARY KEY, v text)");
    session.execute("CREATE TABLE b2 (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO b2 (k, c, v) VALUES (?, ?, 'x')");
    int k = 0;
    for (BatchType type : List.of(BatchType.LOGGED, BatchType.UNLOGGED)) {
      BatchStatementBuilder batch = BatchStatement.builder(type);
      for (int c = 0; c < 30; c++) {
        batch.addStatement(insert.bind(k, c));
      }
      batch.addStatement(SimpleStatement.newInstance("INSERT INTO b1 (k, v) VALUES (?, ?)", k, "y"));
      batch.addStatement(SimpleStatement.newInstance("DELETE FROM b2 WHERE k = ? AND c = ?", k, 29));
      session.execute(batch.build());
      k++;
    }
    same(session.execute("SELECT count(*) FROM b2").one().getLong(0), 58L);
    same(session.execute("SELECT count(*) FROM b1").one().getLong(0), 2L);
  }

  private void counterBatch() {
    session.execute("CREATE TABLE counters (k int PRIMARY KEY, n counter)");
    PreparedStatement add = session.prepare("UPDATE counters SET n = n + ? WHERE k = ?");
    BatchStatementBuilder batch = BatchStatement.builder(BatchType.COUNTER);
    for (int i = 0; i < 10; i++) {
      batch.addStatement(add.bind((long) i, i % 2));
    }
    session.execute(batch.build());
    same(session.execute("SELECT n FROM counters WHERE k = 1").one().getLong(0), 25L);
  }

  private void errors() {
    fails(AlreadyExistsException.class, () -> session.execute("CREATE TABLE b1 (k int PRIMARY KEY)"));
    fails(AlreadyExistsException.class, () -> session.execute("CREATE KEYSPACE " + Main.KEYSPACE
        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"));
    fails(SyntaxError.class, () -> session.execute("SELEC 1"));
    fails(InvalidQueryException.class, () -> session.execute("SELECT * FROM nothing_here"));
    fails(InvalidQueryException.class, () -> session.prepare("SELECT nothing FROM b1"));
    fails(InvalidQueryException.class, () -> session.execute("INSERT INTO b2 (k, v) VALUES (1, 'x')"));
    fails(InvalidConfigurationInQueryException.class,
        () -> session.execute("CREATE KEYSPACE k WITH replication = {'class': 'Nope'}"));
  }

  private void reprepare() {
    session.execute("CREATE TABLE prep (k int PRIMARY KEY, v int)");
    PreparedStatement insert = session.prepare("INSERT INTO prep (k, v) VALUES (?, ?)");
    session.execute(insert.bind(1, 1));
    session.execute("DROP TABLE prep");
    session.execute("CREATE TABLE prep (k int PRIMARY KEY, v int)");
    session.execute(insert.bind(2, 2));
    same(session.execute("SELECT k FROM prep").one().getInt(0), 2);
  }

  private void alter() {
    PreparedStatement select = session.prepare("SELECT * FROM prep WHERE k = ?");
    same(session.execute(select.bind(2)).getColumnDefinitions().size(), 2);
    session.execute("ALTER TABLE prep ADD extra text");
    ResultSet result = session.execute(select.bind(2));
    if (version >= 5) {
      same(result.getColumnDefinitions().size(), 3);
      same(session.execute(select.bind(2)).one().getColumnDefinitions().get(1).getName().toString(), "extra");
    }
  }

  private void timestamps() {
    session.execute("CREATE TABLE ts (k int PRIMARY KEY, v text)");
    PreparedStatement insert = session.prepare("INSERT INTO ts (k, v) VALUES (?, ?)");
    session.execute(insert.bind(1, "x").setQueryTimestamp(4242));
    session.execute(insert.bind(1, "older").setQueryTimestamp(4241));
    Row row = session.execute("SELECT v, writetime(v) FROM ts WHERE k = 1").one();
    same(row.getString(0), "x");
    same(row.getLong(1), 4242L);
    session.execute(BatchStatement.newInstance(BatchType.LOGGED, insert.bind(2, "b")).setQueryTimestamp(77));
    same(session.execute("SELECT writetime(v) FROM ts WHERE k = 2").one().getLong(0), 77L);
  }

  private void named() {
    session.execute(SimpleStatement.newInstance("INSERT INTO ts (k, v) VALUES (:key, :value)",
        Map.<String, Object>of("value", "named", "key", 3)));
    BoundStatement select = session.prepare("SELECT v FROM ts WHERE k = :key").bind().setInt("key", 3);
    same(session.execute(select).one().getString(0), "named");
  }

  private void unset() {
    session.execute("CREATE TABLE unset (k int PRIMARY KEY, a int, b int)");
    PreparedStatement insert = session.prepare("INSERT INTO unset (k, a, b) VALUES (?, ?, ?)");
    session.execute(insert.bind(1, 10, 20));
    session.execute(insert.bind().setInt(0, 1).setToNull(2));
    Row row = session.execute("SELECT a, b FROM unset").one();
    same(row.getInt(0), 10);
    that(row.isNull(1), "null was not written");
  }

  private void warnings() {
    ResultSet result = session.execute(SimpleStatement.newInstance("SELECT count(*) FROM pages")
        .setCustomPayload(Map.of("a", ByteBuffer.wrap(new byte[] {1}))));
    same(result.getExecutionInfo().getWarnings(), List.of("Aggregation query used without partition key"));
  }

  private void keyspacePerRequest() {
    try (CqlSession bare = Main.connect(way, null, null)) {
      CqlIdentifier keyspace = CqlIdentifier.fromCql(Main.KEYSPACE);
      SimpleStatement count = SimpleStatement.newInstance("SELECT count(*) FROM pages WHERE k = 1");
      same(bare.execute(count.setKeyspace(keyspace)).one().getLong(0), 50L);
      same(bare.execute(bare.prepare(count.setKeyspace(keyspace)).bind()).one().getLong(0), 50L);
      fails(InvalidQueryException.class, () -> bare.execute(count));
    }
  }

  private void nowInSeconds() {
    session.execute("INSERT INTO unset (k, a) VALUES (9, 9) USING TTL 100");
    int now = (int) (System.currentTimeMillis() / 1000);
    SimpleStatement select = SimpleStatement.newInstance("SELECT ttl(a) FROM unset WHERE k = 9");
    int ttl = session.execute(select.setNowInSeconds(now + 50)).one().getInt(0);
    that(ttl >= 48 && ttl <= 50, "ttl " + ttl);
    that(session.execute(select.setNowInSeconds(now + 200)).one() == null, "an expired row is seen");
  }

  private void tracing() {
    ResultSet result = session.execute(SimpleStatement.newInstance("SELECT * FROM pages LIMIT 1").setTracing(true));
    that(result.getExecutionInfo().getTracingId() != null, "no tracing id");
  }

  private void concurrent() throws Exception {
    session.execute("CREATE TABLE conc (k int PRIMARY KEY, v text)");
    PreparedStatement insert = session.prepare("INSERT INTO conc (k, v) VALUES (?, ?)");
    PreparedStatement select = session.prepare("SELECT v FROM conc WHERE k = ?");
    Semaphore limit = new Semaphore(1000);
    ConcurrentLinkedQueue<String> problems = new ConcurrentLinkedQueue<>();
    for (int i = 0; i < 3000; i++) {
      int k = i;
      String value = "x".repeat(k % 100) + k;
      limit.acquire();
      CompletionStage<AsyncResultSet> read =
          session.executeAsync(insert.bind(k, value)).thenCompose(done -> session.executeAsync(select.bind(k)));
      read.whenComplete((result, error) -> {
        if (error != null || !value.equals(result.one().getString(0))) {
          problems.add(k + ": " + error);
        }
        limit.release();
      });
    }
    limit.acquire(1000);
    that(problems.isEmpty(), problems.size() + " wrong, first " + problems.peek());
  }

  private void index() throws Exception {
    session.execute("CREATE INDEX conc_v ON conc (v)");
    PreparedStatement select = session.prepare("SELECT k FROM conc WHERE v = ?");
    until("index", () -> {
      try {
        return session.execute(select.bind("x1501")).one().getInt(0) == 1501;
      } catch (RuntimeException e) {
        return false;
      }
    });
    session.execute("UPDATE conc SET v = 'moved' WHERE k = 1501");
    that(session.execute(select.bind("x1501")).one() == null, "stale index entry");
    same(session.execute(select.bind("moved")).one().getInt(0), 1501);
  }

  private void events() throws Exception {
    ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
    SchemaChangeListenerBase listener = new SchemaChangeListenerBase() {
      @Override
      public void onTableCreated(TableMetadata table) {
        heard.add("created " + table.getName());
      }

      @Override
      public void onTableUpdated(TableMetadata current, TableMetadata previous) {
        heard.add("updated " + current.getName() + " " + current.getColumns().size());
      }

      @Override
      public void onTableDropped(TableMetadata table) {
        heard.add("dropped " + table.getName());
      }

      @Override
      public void onUserDefinedTypeCreated(UserDefinedType type) {
        heard.add("created type " + type.getName());
      }
    };
    try (CqlSession second = Main.connect(way, Main.KEYSPACE, listener)) {
      session.execute("CREATE TABLE seen (k int PRIMARY KEY)");
      until("created event", () -> heard.contains("created seen"));
      session.execute("ALTER TABLE seen ADD v int");
      until("updated event", () -> heard.contains("updated seen 2"));
      session.execute("CREATE TYPE kind (a int)");
      until("type event", () -> heard.contains("created type kind"));
      session.execute("DROP TABLE seen");
      until("dropped event", () -> heard.contains("dropped seen"));
      that(second.getMetadata().getKeyspace(Main.KEYSPACE).orElseThrow().getTable("conc").isPresent(), "conc is not known");
    }
  }
}
