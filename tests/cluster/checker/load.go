package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	// A logged batch that is there in part must be whole after so long, and a view must show what its table has.
	patience = 60 * time.Second
	// What is read back at the end at a time, and how often until it answers.
	readersAtEnd = 16
	triesAtEnd   = 20
)

func schema(node *Node) error {
	statements := []string{"CREATE KEYSPACE IF NOT EXISTS " + keyspace +
		" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"}
	for _, table := range tables {
		statements = append(statements, "CREATE TABLE IF NOT EXISTS "+keyspace+"."+table)
	}
	for _, search := range searches {
		for _, text := range search.schema {
			statements = append(statements, fmt.Sprintf(text, keyspace))
		}
	}
	for _, text := range statements {
		if err := node.session.Query(text).Exec(); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// connectAll makes the tables and a session for each node.
func connectAll(addresses []string) (Nodes, error) {
	first, err := connect(addresses[0], "")
	if err != nil {
		return nil, err
	}
	defer first.session.Close()
	if err := schema(first); err != nil {
		return nil, err
	}
	var nodes Nodes
	for _, address := range addresses {
		node, err := connect(address, keyspace)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// runLoad puts load on the nodes until a line comes on stdin, and then, when all nodes are well, reads everything back.
func runLoad(addresses []string, path string, rate float64, seed uint64) error {
	nodes, err := connectAll(addresses)
	if err != nil {
		return err
	}
	recorder, err := newRecorder(path, rate, seed)
	if err != nil {
		return err
	}
	load := &Load{nodes: nodes, recorder: recorder, numbers: map[string]int64{}, all: map[string][]string{}}
	stopped := make(chan struct{})
	var done sync.WaitGroup
	for part := range buckets {
		clients := &Clients{
			Load: load, part: part, keys: map[string]*Key{}, waiting: make(chan struct{}, waitingMax),
			random: rand.New(rand.NewPCG(seed, uint64(part))),
		}
		done.Add(1)
		go clients.run(rate/buckets, stopped, &done)
	}
	fmt.Println("ok")
	go func() {
		for range time.Tick(10 * time.Second) {
			fmt.Fprintln(os.Stderr, recorder.progress())
		}
	}()
	bufio.NewScanner(os.Stdin).Scan()
	close(stopped)
	done.Wait()
	if err := load.readBack(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, recorder.progress())
	return recorder.close()
}

// readBack reads everything that was ever written.
func (l *Load) readBack() error {
	work := make(chan func() error)
	failures := make(chan error, readersAtEnd)
	var readers sync.WaitGroup
	for range readersAtEnd {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for run := range work {
				if err := run(); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	give := func(run func() error) bool {
		select {
		case work <- run:
			return true
		case err := <-failures:
			failures <- err
			return false
		}
	}
	for _, run := range l.reads() {
		if !give(run) {
			break
		}
	}
	close(work)
	readers.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

func (l *Load) reads() []func() error {
	var all []func() error
	add := func(op Op, run func(*Op), enough func(*Op) bool) {
		all = append(all, func() error { return l.final(op, run, enough) })
	}
	for kind, keys := range l.all {
		for _, key := range keys {
			add(Op{Kind: kind, Key: key, Call: "read"}, l.nodes.onRegister, nil)
			search, isSearched := searches[kind]
			if !isSearched {
				continue
			}
			var enough func(*Op) bool
			if search.late {
				enough = l.nodes.isUpToDate
			}
			for value := range int64(searchValues) {
				add(Op{Kind: kind, Key: key, Call: "find", Value: value + 1}, l.nodes.onRegister, enough)
			}
		}
	}
	for _, key := range l.rows {
		add(Op{Kind: row, Key: key, Call: "read"}, l.nodes.readRow, nil)
	}
	for _, key := range l.parts {
		add(Op{Kind: partition, Key: key, Call: "scan"}, l.nodes.readPartition, nil)
	}
	whole := func(op *Op) bool { return op.Found == 0 || op.Found == rowsPerBatch }
	for _, number := range l.batches {
		add(Op{Kind: batch, Key: fmt.Sprintf("batch-%d", number), Call: "read", Value: number}, l.nodes.readBatch, whole)
	}
	scan := Op{Kind: row, Call: "scan", First: math.MinInt64, Last: math.MaxInt64}
	add(scan, func(op *Op) { l.nodes.scanRows(op, 97) }, nil)
	add(scan, func(op *Op) { l.nodes.scanRows(op, 5000) }, nil)
	return all
}

// isUpToDate says whether a search found what stands in the table. What came of a write of unknown outcome may be on its way yet.
func (nodes Nodes) isUpToDate(find *Op) bool {
	row := Op{Kind: find.Kind, Key: find.Key, Call: "read"}
	nodes.onRegister(&row)
	return row.Outcome == ok && (find.Found != 0) == (row.Found == find.Value)
}

// final reads until there is an answer, and, for what may be under way, until it is enough.
func (l *Load) final(op Op, run func(*Op), enough func(*Op) bool) error {
	began := time.Now()
	for try := 0; ; try++ {
		now := op
		now.Invoke, now.Final = l.recorder.now(), true
		run(&now)
		now.Return = l.recorder.now()
		waits := now.Outcome == ok && enough != nil && !enough(&now) && time.Since(began) < patience
		if now.Outcome == ok && !waits {
			l.recorder.record(&now)
			return nil
		}
		if !waits && try >= triesAtEnd {
			return errors.New("cannot read back " + now.Kind + " " + now.Key + ": " + now.Error)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// readRow gets one row by its key.
func (nodes Nodes) readRow(op *Op) {
	nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
		op.Found = 0
		q := node.session.Query("SELECT v FROM rows WHERE k = ?", op.Key)
		return none(q.Consistency(level).ScanContext(ctx, &op.Found))
	})
}
