package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sort"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"gopkg.in/inf.v0"
)

func (s *suite) everything(version int) {
	s.check("system tables", s.systemTables)
	s.check("create and metadata", s.metadata)
	s.check("all types", func() { s.types(version) })
	s.check("nulls", s.nulls)
	s.check("paging", s.paging)
	s.check("lightweight transactions", s.lwt)
	s.check("batches", s.batches)
	s.check("counter batch", s.counterBatch)
	s.check("errors", s.errors)
	s.check("prepared again after drop", s.reprepare)
	s.check("select * after alter", s.alter)
	s.check("client timestamps", s.timestamps)
	s.check("named values", s.named)
	if version >= 4 {
		s.check("unset values", s.unset)
		s.check("warnings", s.warnings)
		s.check("custom payload", s.payload)
	}
	if version >= 5 {
		s.check("keyspace per request", s.keyspacePerRequest)
		s.check("now in seconds", s.nowInSeconds)
	}
	s.check("tracing flag", s.tracing)
	s.check("500 at once on one connection", s.concurrent)
	s.check("secondary index", s.index)
	s.check("schema events", func() { s.events(version) })
}

func (s *suite) systemTables() {
	var release, partitioner string
	var tokens []string
	must(s.session.Query("SELECT release_version, partitioner, tokens FROM system.local WHERE key = 'local'").
		Scan(&release, &partitioner, &tokens))
	that(strings.HasPrefix(release, "5.0"), "release %s", release)
	same(partitioner, "org.apache.cassandra.dht.Murmur3Partitioner")
	that(len(tokens) > 0, "no tokens")
	hosts := s.session.GetHosts()
	same(len(hosts), 1)
	that(hosts[0].IsUp(), "host is down")
}

func (s *suite) metadata() {
	s.exec("CREATE TYPE address (street text, zip int)")
	s.exec(`CREATE TABLE users (org uuid, team int, joined timestamp, name text, motto text static,
		home frozen<address>, tags set<text>, scores map<text, double>,
		PRIMARY KEY ((org, team), joined, name)) WITH CLUSTERING ORDER BY (joined DESC, name ASC)`)
	s.exec("CREATE INDEX users_motto ON users (motto)")
	until("metadata", func() bool {
		ks, err := s.session.KeyspaceMetadata(keyspace)
		return err == nil && ks.Tables["users"] != nil && ks.UserTypes["address"] != nil
	})
	ks, err := s.session.KeyspaceMetadata(keyspace)
	must(err)
	same(ks.DurableWrites, true)
	that(strings.HasSuffix(ks.StrategyClass, "SimpleStrategy"), "strategy %s", ks.StrategyClass)
	users := ks.Tables["users"]
	same(len(users.PartitionKey), 2)
	same(users.PartitionKey[0].Name+users.PartitionKey[1].Name, "orgteam")
	same(users.ClusteringColumns[0].Name+users.ClusteringColumns[1].Name, "joinedname")
	same(users.ClusteringColumns[0].ClusteringOrder, "desc")
	same(len(users.Columns), 8)
	same(users.Columns["scores"].Type.Type(), gocql.TypeMap)
	same(users.Columns["motto"].Kind, gocql.ColumnStatic)
	same(ks.UserTypes["address"].FieldNames, []string{"street", "zip"})
	all, err := s.session.AllKeyspaceMetadata()
	must(err)
	that(all["system"] != nil && all["system_schema"] != nil, "system keyspaces are missing")
}

type address struct {
	Street string `cql:"street"`
	Zip    int    `cql:"zip"`
}

func (s *suite) types(version int) {
	s.exec(`CREATE TABLE everything (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal,
		g double, h duration, i float, j inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid,
		s varint, t list<text>, u set<int>, v map<text, bigint>, w frozen<map<int, frozen<list<text>>>>,
		x tuple<int, text>, y frozen<address>, z vector<float, 3>, aa address)`)
	insert := `INSERT INTO everything (k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (?, ?), ?, ?, ?)`
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	moment := time.Date(2024, 2, 29, 12, 34, 56, 789e6, time.UTC)
	timeuuid, random := gocql.TimeUUID(), gocql.MustRandomUUID()
	dec, _ := new(inf.Dec).SetString("-12345678901234567890.0123")
	huge, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	var duration interface{} = gocql.Duration{Months: 14, Days: 3, Nanoseconds: 5e9}
	if version < 5 {
		duration = nil // the type came with version 5
	}
	must(s.session.Query(insert, 1, "plain", int64(-1<<63), []byte{0, 255, 16}, true, day, dec, -1.5e300, duration,
		float32(0.5), net.ParseIP("2001:db8::1"), int16(-32768), "Ἑλένη 🏺", 86399*time.Second, moment, timeuuid,
		int8(-128), random, huge, []string{"b", "a"}, []int{3, 1, 2}, map[string]int64{"x": 1},
		map[int][]string{7: {"p", ""}}, 5, "five", address{"High", 12}, []float32{0.5, -1, 2},
		address{"Low", 13}).Exec())

	var (
		a, m   string
		b      int64
		c      []byte
		d      bool
		e, o   time.Time
		f      *inf.Dec
		g      float64
		h      *gocql.Duration
		i      float32
		j      net.IP
		l      int16
		n      time.Duration
		p, r   gocql.UUID
		q      int8
		varint *big.Int
		t      []string
		u      []int
		v      map[string]int64
		w      map[int][]string
		x1     int
		x2     string
		y, aa  address
		z      []float32
	)
	must(s.session.Query("SELECT a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa FROM everything WHERE k = ?", 1).
		Scan(&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &l, &m, &n, &o, &p, &q, &r, &varint, &t, &u, &v, &w, &x1, &x2, &y, &z, &aa))
	same(a, "plain")
	same(b, int64(-1<<63))
	same(c, []byte{0, 255, 16})
	same(d, true)
	same(e.UTC(), day)
	same(f.String(), dec.String())
	same(g, -1.5e300)
	if version >= 5 {
		same(*h, gocql.Duration{Months: 14, Days: 3, Nanoseconds: 5e9})
	}
	same(i, float32(0.5))
	same(j.String(), "2001:db8::1")
	same(l, int16(-32768))
	same(m, "Ἑλένη 🏺")
	same(n, 86399*time.Second)
	same(o.UTC(), moment)
	same(p, timeuuid)
	same(q, int8(-128))
	same(r, random)
	same(varint.String(), huge.String())
	same(t, []string{"b", "a"})
	same(u, []int{1, 2, 3})
	same(v, map[string]int64{"x": 1})
	same(w, map[int][]string{7: {"p", ""}})
	same(x1, 5)
	same(x2, "five")
	same(y, address{"High", 12})
	same(aa, address{"Low", 13})
	same(z, []float32{0.5, -1, 2})
}

func (s *suite) nulls() {
	s.exec("INSERT INTO everything (k, a, m, t) VALUES (?, ?, ?, ?)", 2, nil, "", []string{})
	var a, m *string
	var t []string
	must(s.session.Query("SELECT a, m, t FROM everything WHERE k = 2").Scan(&a, &m, &t))
	that(a == nil, "a is not null")
	that(m != nil && *m == "", "m is not empty")
	that(t == nil, "an empty list must read as null")
}

func (s *suite) paging() {
	s.exec("CREATE TABLE pages (k int, c int, v text, PRIMARY KEY (k, c))")
	for k := 0; k < 4; k++ {
		batch := s.session.Batch(gocql.UnloggedBatch)
		for c := 0; c < 50; c++ {
			batch.Query("INSERT INTO pages (k, c, v) VALUES (?, ?, ?)", k, c, fmt.Sprint(k, c))
		}
		must(batch.Exec())
	}
	for _, size := range []int{1, 3, 50, 199, 200, 201, 5000} {
		seen, k, c := map[string]bool{}, 0, 0
		iter := s.session.Query("SELECT k, c FROM pages").PageSize(size).Iter()
		for iter.Scan(&k, &c) {
			seen[fmt.Sprint(k, ".", c)] = true
		}
		must(iter.Close())
		same(len(seen), 200)
		var descending []int
		iter = s.session.Query("SELECT c FROM pages WHERE k = ? AND c < ? ORDER BY c DESC", 2, 40).PageSize(size).Iter()
		for iter.Scan(&c) {
			descending = append(descending, c)
		}
		must(iter.Close())
		same(len(descending), 40)
		that(sort.IsSorted(sort.Reverse(sort.IntSlice(descending))), "not descending")
	}
	// by hand, with the state carried over
	var state []byte
	rows, pages := 0, 0
	for {
		iter := s.session.Query("SELECT k, c FROM pages").PageSize(30).PageState(state).Iter()
		state = append([]byte(nil), iter.PageState()...)
		rows += iter.NumRows()
		pages++
		must(iter.Close())
		if len(state) == 0 {
			break
		}
	}
	same(rows, 200)
	that(pages >= 7, "%d pages", pages)
}

func (s *suite) lwt() {
	s.exec("CREATE TABLE cas (k int PRIMARY KEY, v int, w text)")
	row := map[string]interface{}{}
	applied, err := s.session.Query("INSERT INTO cas (k, v, w) VALUES (?, ?, ?) IF NOT EXISTS", 1, 1, "one").MapScanCAS(row)
	must(err)
	that(applied, "the first insert was not applied")
	var k, v int
	var w string
	applied, err = s.session.Query("INSERT INTO cas (k, v, w) VALUES (?, ?, ?) IF NOT EXISTS", 1, 2, "two").ScanCAS(&k, &v, &w)
	must(err)
	that(!applied, "the second insert was applied")
	same([]interface{}{k, v, w}, []interface{}{1, 1, "one"})
	applied, err = s.session.Query("UPDATE cas SET v = ? WHERE k = ? IF v = ?", 5, 1, 9).ScanCAS(&v)
	must(err)
	that(!applied && v == 1, "applied %v, v %d", applied, v)
	applied, err = s.session.Query("UPDATE cas SET v = ? WHERE k = ? IF v = ? AND w = ?", 5, 1, 1, "one").ScanCAS(&v, &w)
	must(err)
	that(applied, "the right condition was refused")
	row = map[string]interface{}{}
	applied, err = s.session.Query("DELETE FROM cas WHERE k = ? IF EXISTS", 99).MapScanCAS(row)
	must(err)
	that(!applied, "deleted what is not there")
	batch := s.session.Batch(gocql.LoggedBatch)
	batch.Query("UPDATE cas SET w = ? WHERE k = ? IF v = ?", "batched", 1, 5)
	batch.Query("UPDATE cas SET v = ? WHERE k = ?", 6, 1)
	row = map[string]interface{}{}
	applied, iter, err := batch.MapExecCAS(row)
	must(err)
	that(applied, "the conditional batch was refused")
	must(iter.Close())
	must(s.session.Query("SELECT v, w FROM cas WHERE k = 1").Scan(&v, &w))
	same([]interface{}{v, w}, []interface{}{6, "batched"})
	must(s.session.Query("SELECT v FROM cas WHERE k = 1").Consistency(gocql.Serial).Scan(&v))
}

func (s *suite) batches() {
	s.exec("CREATE TABLE b1 (k int PRIMARY KEY, v text)")
	s.exec("CREATE TABLE b2 (k int, c int, v text, PRIMARY KEY (k, c))")
	for i, kind := range []gocql.BatchType{gocql.LoggedBatch, gocql.UnloggedBatch} {
		batch := s.session.Batch(kind)
		for c := 0; c < 30; c++ {
			batch.Query("INSERT INTO b2 (k, c, v) VALUES (?, ?, ?)", i, c, "x")
		}
		batch.Query("INSERT INTO b1 (k, v) VALUES (?, ?)", i, "y")
		batch.Query("DELETE FROM b2 WHERE k = ? AND c = ?", i, 29)
		must(batch.Exec())
	}
	var n int
	must(s.session.Query("SELECT count(*) FROM b2").Scan(&n))
	same(n, 58)
	must(s.session.Query("SELECT count(*) FROM b1").Scan(&n))
	same(n, 2)
}

func (s *suite) counterBatch() {
	s.exec("CREATE TABLE counters (k int PRIMARY KEY, n counter)")
	batch := s.session.Batch(gocql.CounterBatch)
	for i := 0; i < 10; i++ {
		batch.Query("UPDATE counters SET n = n + ? WHERE k = ?", int64(i), i%2)
	}
	must(batch.Exec())
	var n int64
	must(s.session.Query("SELECT n FROM counters WHERE k = 1").Scan(&n))
	same(n, 25)
}

func (s *suite) errors() {
	var exists *gocql.RequestErrAlreadyExists
	err := s.session.Query("CREATE TABLE b1 (k int PRIMARY KEY)").Exec()
	that(errors.As(err, &exists), "%T %v", err, err)
	same(exists.Keyspace+"."+exists.Table, keyspace+".b1")
	code := func(err error) int {
		var r gocql.RequestError
		that(errors.As(err, &r), "%T %v", err, err)
		return r.Code()
	}
	same(code(s.session.Query("SELEC 1").Exec()), gocql.ErrCodeSyntax)
	same(code(s.session.Query("SELECT * FROM nothing_here").Exec()), gocql.ErrCodeInvalid)
	same(code(s.session.Query("SELECT nothing FROM b1").Exec()), gocql.ErrCodeInvalid)
	same(code(s.session.Query("INSERT INTO b2 (k, v) VALUES (1, 'x')").Exec()), gocql.ErrCodeInvalid)
	same(code(s.session.Query("CREATE KEYSPACE k WITH replication = {'class': 'Nope'}").Exec()), gocql.ErrCodeConfig)
	err = s.session.Query("SELECT v FROM b1 WHERE k = ?", 1000).Scan(new(string))
	that(errors.Is(err, gocql.ErrNotFound), "%v", err)
}

func (s *suite) reprepare() {
	insert := "INSERT INTO prep (k, v) VALUES (?, ?)"
	s.exec("CREATE TABLE prep (k int PRIMARY KEY, v int)")
	s.exec(insert, 1, 1)
	s.exec("DROP TABLE prep")
	s.exec("CREATE TABLE prep (k int PRIMARY KEY, v int)")
	s.exec(insert, 2, 2)
	var k int
	must(s.session.Query("SELECT k FROM prep").Scan(&k))
	same(k, 2)
}

func (s *suite) alter() {
	read := func() int {
		iter := s.session.Query("SELECT * FROM prep WHERE k = ?", 2).Iter()
		row := map[string]interface{}{}
		that(iter.MapScan(row), "no row")
		must(iter.Close())
		return len(row)
	}
	same(read(), 2)
	s.exec("ALTER TABLE prep ADD extra text")
	// before version 5 the driver may go on with the columns it knew
	until("the new column", func() bool {
		n := read()
		return n == 3 || (n == 2 && !strings.HasPrefix(s.prefix, "v5"))
	})
}

func (s *suite) timestamps() {
	s.exec("CREATE TABLE ts (k int PRIMARY KEY, v text)")
	must(s.session.Query("INSERT INTO ts (k, v) VALUES (?, ?)", 1, "x").WithTimestamp(4242).Exec())
	must(s.session.Query("INSERT INTO ts (k, v) VALUES (?, ?)", 1, "older").WithTimestamp(4241).Exec())
	var written int64
	var v string
	must(s.session.Query("SELECT v, writetime(v) FROM ts WHERE k = 1").Scan(&v, &written))
	same(v, "x")
	same(written, 4242)
	batch := s.session.Batch(gocql.LoggedBatch).WithTimestamp(77)
	batch.Query("INSERT INTO ts (k, v) VALUES (?, ?)", 2, "b")
	must(batch.Exec())
	must(s.session.Query("SELECT writetime(v) FROM ts WHERE k = 2").Scan(&written))
	same(written, 77)
}

func (s *suite) named() {
	s.exec("INSERT INTO ts (k, v) VALUES (:key, :value)", gocql.NamedValue("key", 3), gocql.NamedValue("value", "named"))
	var v string
	must(s.session.Query("SELECT v FROM ts WHERE k = :key", gocql.NamedValue("key", 3)).Scan(&v))
	same(v, "named")
}

func (s *suite) unset() {
	s.exec("CREATE TABLE unset (k int PRIMARY KEY, a int, b int)")
	insert := "INSERT INTO unset (k, a, b) VALUES (?, ?, ?)"
	s.exec(insert, 1, 10, 20)
	s.exec(insert, 1, gocql.UnsetValue, nil)
	var a, b *int
	must(s.session.Query("SELECT a, b FROM unset WHERE k = 1").Scan(&a, &b))
	that(a != nil && *a == 10, "unset value was written")
	that(b == nil, "null was not written")
}

func (s *suite) warnings() {
	iter := s.session.Query("SELECT count(*) FROM pages").Iter()
	warnings := iter.Warnings()
	must(iter.Close())
	same(warnings, []string{"Aggregation query used without partition key"})
}

func (s *suite) payload() {
	must(s.session.Query("SELECT k FROM pages LIMIT 1").CustomPayload(map[string][]byte{"a": []byte("b")}).Exec())
}

func (s *suite) keyspacePerRequest() {
	session, err := s.config(5, nil).CreateSession()
	must(err)
	defer session.Close()
	var n int
	must(session.Query("SELECT count(*) FROM pages WHERE k = ?", 1).SetKeyspace(keyspace).Scan(&n))
	same(n, 50)
	that(session.Query("SELECT count(*) FROM pages WHERE k = ?", 1).Exec() != nil, "no keyspace, and no error")
}

func (s *suite) nowInSeconds() {
	s.exec("INSERT INTO unset (k, a) VALUES (?, ?) USING TTL 100", 9, 9)
	var ttl *int
	now := int(time.Now().Unix())
	must(s.session.Query("SELECT ttl(a) FROM unset WHERE k = ?", 9).WithNowInSeconds(now + 50).Scan(&ttl))
	that(ttl != nil && *ttl >= 48 && *ttl <= 50, "ttl %v", ttl)
	err := s.session.Query("SELECT a FROM unset WHERE k = ?", 9).WithNowInSeconds(now + 200).Scan(new(int))
	that(errors.Is(err, gocql.ErrNotFound), "expired row is seen: %v", err)
}

func (s *suite) tracing() {
	var out bytes.Buffer
	tracer := gocql.NewTraceWriter(s.session, &out)
	must(s.session.Query("SELECT k FROM pages LIMIT 1").Trace(tracer).Exec())
}

func (s *suite) concurrent() {
	s.exec("CREATE TABLE conc (k int PRIMARY KEY, v text)")
	var wg sync.WaitGroup
	problems := make(chan error, 2000)
	limit := make(chan struct{}, 500)
	for i := 0; i < 2000; i++ {
		wg.Add(1)
		limit <- struct{}{}
		go func(i int) {
			defer func() { <-limit; wg.Done() }()
			value := strings.Repeat("x", i%100) + fmt.Sprint(i)
			if err := s.session.Query("INSERT INTO conc (k, v) VALUES (?, ?)", i, value).Exec(); err != nil {
				problems <- err
				return
			}
			var got string
			if err := s.session.Query("SELECT v FROM conc WHERE k = ?", i).Scan(&got); err != nil || got != value {
				problems <- fmt.Errorf("%d: got %q, %v", i, got, err)
			}
		}(i)
	}
	wg.Wait()
	close(problems)
	for err := range problems {
		must(err)
	}
}

func (s *suite) index() {
	s.exec("CREATE INDEX conc_v ON conc (v)")
	var k int
	until("index", func() bool {
		return s.session.Query("SELECT k FROM conc WHERE v = ?", "x1501").Scan(&k) == nil
	})
	same(k, 1501)
	s.exec("UPDATE conc SET v = ? WHERE k = ?", "moved", 1501)
	err := s.session.Query("SELECT k FROM conc WHERE v = ?", "x1501").Scan(&k)
	that(errors.Is(err, gocql.ErrNotFound), "stale index entry: %v", err)
	must(s.session.Query("SELECT k FROM conc WHERE v = ?", "moved").Scan(&k))
}

type listener struct {
	mutex sync.Mutex
	seen  []string
}

func (l *listener) add(what string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.seen = append(l.seen, what)
}

func (l *listener) has(what string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, s := range l.seen {
		if s == what {
			return true
		}
	}
	return false
}

func (l *listener) OnTableCreated(e gocql.OnTableCreatedEvent) { l.add("created " + e.Table.Name) }
func (l *listener) OnTableUpdated(e gocql.OnTableUpdatedEvent) { l.add("updated " + e.New.Name) }
func (l *listener) OnTableDropped(e gocql.OnTableDroppedEvent) { l.add("dropped " + e.Table.Name) }

// events lets a second session do what the first one has to hear.
func (s *suite) events(version int) {
	heard := &listener{}
	c := s.config(version, nil)
	c.Keyspace = keyspace
	c.Metadata.SchemaListener.TableChangeListener = heard
	second, err := c.CreateSession()
	must(err)
	defer second.Close()
	s.exec("CREATE TABLE seen (k int PRIMARY KEY)")
	until("created event", func() bool { return heard.has("created seen") })
	s.exec("ALTER TABLE seen ADD v int")
	until("updated event", func() bool { return heard.has("updated seen") })
	s.exec("DROP TABLE seen")
	until("dropped event", func() bool { return heard.has("dropped seen") })
	must(s.session.AwaitSchemaAgreement(context.Background()))
}
