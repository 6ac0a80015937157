// Checks a CQL server through the Apache gocql driver. usage: drivertest HOST PORT
//
// Prints a line for each check, `ok NAME` or `FAIL NAME: why`, and exits 1 if one failed.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/apache/cassandra-gocql-driver/v2/lz4"
	"github.com/apache/cassandra-gocql-driver/v2/snappy"
)

const keyspace = "driver_go"

type suite struct {
	host      string
	port      int
	prefix    string
	passed    int
	failed    int
	session   *gocql.Session
	dimension string
}

type failure struct{ words string }

// must fails the running check when err is set.
func must(err error) {
	if err != nil {
		panic(failure{err.Error()})
	}
}

// same fails the running check when the two do not print alike.
func same(got, want interface{}) {
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		panic(failure{fmt.Sprintf("got %s, want %s", g, w)})
	}
}

// that fails the running check when the condition does not hold.
func that(condition bool, format string, args ...interface{}) {
	if !condition {
		panic(failure{fmt.Sprintf(format, args...)})
	}
}

// until polls a condition.
func until(what string, condition func() bool) {
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		that(time.Now().Before(deadline), "%s: not within 30 s", what)
	}
}

func (s *suite) check(name string, body func()) {
	name = s.prefix + name
	defer func() {
		if r := recover(); r != nil {
			if f, ok := r.(failure); ok {
				fmt.Printf("FAIL %s: %s\n", name, f.words)
			} else {
				fmt.Printf("FAIL %s: panic: %v\n", name, r)
			}
			s.failed++
			return
		}
		fmt.Printf("ok %s\n", name)
		s.passed++
	}()
	body()
}

func (s *suite) config(version int, compressor gocql.Compressor) *gocql.ClusterConfig {
	c := gocql.NewCluster(s.host)
	c.Port = s.port
	c.ProtoVersion = version
	c.Compressor = compressor
	c.Consistency = gocql.Quorum
	c.SerialConsistency = gocql.Serial
	c.Timeout, c.ConnectTimeout = 30*time.Second, 30*time.Second
	c.NumConns = 1
	return c
}

func (s *suite) exec(cql string, args ...interface{}) {
	must(s.session.Query(cql, args...).Exec())
}

func compressorName(c gocql.Compressor) string {
	if c == nil {
		return "plain"
	}
	return c.Name()
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "cluster" {
		port, err := strconv.Atoi(os.Args[3])
		must(err)
		cluster(os.Args[2], port, os.Args[4])
		return
	}
	port, err := strconv.Atoi(os.Args[2])
	must(err)
	s := &suite{host: os.Args[1], port: port}

	s.check("create keyspace", func() {
		session, err := s.config(0, nil).CreateSession()
		must(err)
		defer session.Close()
		must(session.Query("DROP KEYSPACE IF EXISTS " + keyspace).Exec())
		must(session.Query("CREATE KEYSPACE " + keyspace +
			" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").Exec())
	})
	for _, way := range []struct {
		version    int
		compressor gocql.Compressor
	}{
		{3, nil}, {4, nil}, {5, nil}, {4, lz4.LZ4Compressor{}}, {4, snappy.SnappyCompressor{}}, {5, lz4.LZ4Compressor{}},
	} {
		s.prefix = fmt.Sprintf("v%d %s ", way.version, compressorName(way.compressor))
		s.check("connect", func() {
			c := s.config(way.version, way.compressor)
			c.Keyspace = keyspace
			session, err := c.CreateSession()
			must(err)
			s.session = session
		})
		if s.session == nil {
			continue
		}
		s.clean()
		s.everything(way.version)
		s.session.Close()
		s.session = nil
	}
	s.prefix = ""
	s.check("drop keyspace", func() {
		session, err := s.config(0, nil).CreateSession()
		must(err)
		defer session.Close()
		must(session.Query("DROP KEYSPACE " + keyspace).Exec())
	})
	fmt.Printf("%d checks passed\n", s.passed)
	if s.failed > 0 {
		os.Exit(1)
	}
}

// clean drops what an earlier pass made.
func (s *suite) clean() {
	s.check("clean", func() {
		for _, table := range []string{"users", "pages", "cas", "b1", "b2", "counters", "ts", "prep", "conc", "everything", "seen", "unset"} {
			s.exec("DROP TABLE IF EXISTS " + table)
		}
		s.exec("DROP TYPE IF EXISTS address")
	})
}
