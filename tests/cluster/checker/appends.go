package main

import (
	"context"
	"fmt"
	"math"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// rowsPerBatch partitions are written by one logged batch.
const rowsPerBatch = 5

func (c *Clients) timed(op *Op, run func(*Op)) func() {
	return func() {
		op.Invoke = c.recorder.now()
		run(op)
		op.Return = c.recorder.now()
		c.recorder.record(op)
	}
}

// insertRow begins a write of a new row.
func (c *Clients) insertRow() func() {
	key, number := c.keyIn(row, c.part)
	op := &Op{Kind: row, Key: key, Call: "write", Value: number}
	c.mutex.Lock()
	c.rows = append(c.rows, key)
	c.mutex.Unlock()
	return c.timed(op, func(op *Op) {
		c.nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
			q := node.session.Query("INSERT INTO rows (k, v) VALUES (?, ?)", op.Key, op.Value)
			return q.Consistency(level).ExecContext(ctx)
		})
	})
}

// growPartition begins a write of a new row of the partition that grows, or now and then reads it whole, by pages.
func (c *Clients) growPartition() func() {
	if c.log == "" || c.logged >= rowsPerPartition {
		c.log, _ = c.keyIn(partition, c.part)
		c.logged = 0
		c.mutex.Lock()
		c.parts = append(c.parts, c.log)
		c.mutex.Unlock()
	}
	if c.random.IntN(4) == 0 {
		return c.timed(&Op{Kind: partition, Key: c.log, Call: "scan"}, c.nodes.readPartition)
	}
	c.logged++
	op := &Op{Kind: partition, Key: c.log, Call: "write", Value: int64(c.logged)}
	return c.timed(op, func(op *Op) {
		c.nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
			q := node.session.Query("INSERT INTO partitions (p, c, v) VALUES (?, ?, ?)", op.Key, op.Value, op.Value)
			return q.Consistency(level).ExecContext(ctx)
		})
	})
}

// gather puts the first column of all pages into the operation's rows.
func gather(ctx context.Context, op *Op, q *gocql.Query) error {
	op.Rows = []int64{}
	rows := q.IterContext(ctx)
	var value int64
	for rows.Scan(&value) {
		op.Rows = append(op.Rows, value)
	}
	return rows.Close()
}

func (nodes Nodes) readPartition(op *Op) {
	nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
		q := node.session.Query("SELECT c FROM partitions WHERE p = ?", op.Key)
		return gather(ctx, op, q.Consistency(level).PageSize(13))
	})
}

// scan begins a read of all rows in a range of tokens, by pages.
func (c *Clients) scan() func() {
	c.mutex.Lock()
	share := float64(rowsPerScan) / float64(len(c.rows)+1)
	c.mutex.Unlock()
	op := &Op{Kind: row, Call: "scan", First: math.MinInt64, Last: math.MaxInt64}
	if share < 1 {
		width := uint64(share * math.MaxUint64)
		op.First += int64(c.random.Uint64N(math.MaxUint64 - width))
		op.Last = op.First + int64(width)
	}
	return c.timed(op, func(op *Op) { c.nodes.scanRows(op, 17) })
}

func (nodes Nodes) scanRows(op *Op, pageSize int) {
	nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
		q := node.session.Query("SELECT v FROM rows WHERE token(k) >= ? AND token(k) <= ?", op.First, op.Last)
		return gather(ctx, op, q.Consistency(level).PageSize(pageSize))
	})
}

func batchKey(number int64, at int) string { return fmt.Sprintf("batch-%d-%d", number, at) }

// batch begins a logged batch over partitions that lie anywhere.
func (c *Clients) batch() func() {
	number := c.next(batch)
	c.mutex.Lock()
	c.batches = append(c.batches, number)
	c.mutex.Unlock()
	op := &Op{Kind: batch, Key: fmt.Sprintf("batch-%d", number), Call: "write", Value: number}
	return c.timed(op, func(op *Op) {
		c.nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
			b := node.session.Batch(gocql.LoggedBatch).Consistency(level)
			for at := range rowsPerBatch {
				b.Query("INSERT INTO batches (k, b) VALUES (?, ?)", batchKey(op.Value, at), op.Value)
			}
			return b.ExecContext(ctx)
		})
	})
}

// readBatch counts the rows that there are of a batch.
func (nodes Nodes) readBatch(op *Op) {
	nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
		op.Found = 0
		for at := range rowsPerBatch {
			var number int64
			q := node.session.Query("SELECT b FROM batches WHERE k = ?", batchKey(op.Value, at))
			if err := none(q.Consistency(level).ScanContext(ctx, &number)); err != nil {
				return err
			}
			if number == op.Value {
				op.Found++
			}
		}
		return nil
	})
}
