// Reads captured changes by scylla-cdc-go, and prints each changed row as a line of JSON, until it is ended.
//
//	reader HOST PORT KEYSPACE.TABLE
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/gocql/gocql"
	scyllacdc "github.com/scylladb/scylla-cdc-go"
)

type line struct {
	Operation int    `json:"operation"`
	Stream    string `json:"stream"`
	Time      string `json:"time"`
	Pk        int    `json:"pk"`
	V         *int   `json:"v"`
}

func consume(_ context.Context, _ string, change scyllacdc.Change) error {
	out := json.NewEncoder(os.Stdout)
	for _, row := range change.Delta {
		pk, _ := row.GetValue("pk")
		printed := line{
			Operation: int(row.GetOperation()),
			Stream:    change.StreamID.String(),
			Time:      change.Time.String(),
			Pk:        *pk.(*int),
		}
		if value, ok := row.GetAtomicChange("v").Value.(*int); ok {
			printed.V = value
		}
		if err := out.Encode(printed); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: reader HOST PORT KEYSPACE.TABLE")
		os.Exit(2)
	}
	port, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	cluster := gocql.NewCluster(os.Args[1])
	cluster.Port = port
	cluster.Timeout = 10 * time.Second
	cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	session, err := cluster.CreateSession()
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	ctx := context.Background()
	reader, err := scyllacdc.NewReader(ctx, &scyllacdc.ReaderConfig{
		Session:               session,
		TableNames:            []string{os.Args[3]},
		ChangeConsumerFactory: scyllacdc.MakeChangeConsumerFactoryFromFunc(consume),
		Logger:                log.New(os.Stderr, "", log.Ltime),
		Advanced: scyllacdc.AdvancedReaderConfig{
			ConfidenceWindowSize:   time.Second,
			PostNonEmptyQueryDelay: 200 * time.Millisecond,
			PostEmptyQueryDelay:    200 * time.Millisecond,
			PostFailedQueryDelay:   200 * time.Millisecond,
			QueryTimeWindowSize:    5 * time.Second,
			ChangeAgeLimit:         time.Hour,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := reader.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
