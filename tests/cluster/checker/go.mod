module helenus/tests/cluster/checker

go 1.24

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/apache/cassandra-gocql-driver/v2 v2.1.2
	github.com/twmb/murmur3 v1.1.8
)

require gopkg.in/inf.v0 v0.9.1 // indirect
