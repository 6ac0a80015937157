package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	// A register is given up after so many operations, and a new one taken, so that its history stays short enough to be decided.
	opsPerKey = 50
	// Or when so many of its operations have no answer or an unknown outcome: each is concurrent with all that follow.
	unknownPerKey = 6
	// Operations of one part of the ring that wait for an answer; with more, its clients wait too.
	waitingMax       = 32
	rowsPerPartition = 100
	// A range scan is cut so that it finds about so many rows.
	rowsPerScan = 100
)

var tables = []string{
	"registers (k text PRIMARY KEY, v bigint)",
	"conditions (k text PRIMARY KEY, v bigint)",
	"indexed (k text PRIMARY KEY, v text)",
	"ranged (k text PRIMARY KEY, v bigint)",
	"nearest (k text PRIMARY KEY, v vector<float, 4>)",
	"viewed (k text PRIMARY KEY, v text)",
	"counters (k text PRIMARY KEY, n counter)",
	"rows (k text PRIMARY KEY, v bigint)",
	"partitions (p text, c bigint, v bigint, PRIMARY KEY (p, c))",
	"batches (k text PRIMARY KEY, b bigint)",
}

// tableOf says where the registers of a kind lie.
var tableOf = map[string]string{
	register: "registers", cas: "conditions", mixed: "registers", counter: "counters",
	indexed: "indexed", ranged: "ranged", nearest: "nearest", viewed: "viewed",
}

// Key is a register that is in use.
type Key struct {
	name    string
	mutex   sync.Mutex
	begun   int
	open    int // waiting for an answer, or of unknown outcome
	written int64
	// What was read or written last, for conditions that can hold.
	last int64
}

func (k *Key) worn() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.begun >= opsPerKey || k.open >= unknownPerKey
}

// begin counts an operation and gives it a value of its own, and the value that the row had last.
func (k *Key) begin() (value, last int64) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.begun++
	k.open++
	k.written++
	return k.written, k.last
}

func (k *Key) end(op *Op) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if op.Outcome == unknown && op.Call != "read" && op.Call != "find" {
		return
	}
	k.open--
	if op.Outcome != ok {
		return
	}
	switch {
	case op.Call == "read" || !op.Applied && isConditional(op):
		k.last = op.Found
	case op.Call != "find":
		k.last = op.Value
	}
}

func isConditional(op *Op) bool {
	switch op.Call {
	case "insert", "update", "remove", "touch":
		return true
	}
	return false
}

// Load is what all clients share.
type Load struct {
	nodes    Nodes
	recorder *Recorder

	mutex   sync.Mutex
	numbers map[string]int64
	rows    []string
	all     map[string][]string // every register that there was, by kind
	parts   []string
	batches []int64
}

func (l *Load) next(kind string) int64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.numbers[kind]++
	return l.numbers[kind]
}

// keyIn makes a new key of a part of the ring.
func (l *Load) keyIn(kind string, part int) (string, int64) {
	for {
		number := l.next(kind)
		if key := fmt.Sprintf("%s-%d", kind, number); bucket(key) == part {
			return key, number
		}
	}
}

// Clients put load on one part of the ring.
type Clients struct {
	*Load
	part    int
	random  *rand.Rand
	keys    map[string]*Key
	log     string // the partition that grows
	logged  int
	waiting chan struct{}
}

// run begins bursts of operations, until stopped. A burst is of one key, at several nodes at once.
func (c *Clients) run(perSecond float64, stopped <-chan struct{}, done *sync.WaitGroup) {
	defer done.Done()
	for {
		burst := 1 + c.random.IntN(4)
		c.burst(burst, done)
		pause := time.Duration(float64(burst) / perSecond * (0.5 + c.random.Float64()) * float64(time.Second))
		select {
		case <-stopped:
			return
		case <-time.After(pause):
		}
	}
}

func (c *Clients) burst(size int, done *sync.WaitGroup) {
	begin := c.choose()
	for range size {
		run := begin()
		c.waiting <- struct{}{}
		done.Add(1)
		go func() {
			defer done.Done()
			defer func() { <-c.waiting }()
			run()
		}()
	}
}

// choose says what the next burst is about. What it gives begins one operation and gives what runs it.
func (c *Clients) choose() func() func() {
	switch dice := c.random.IntN(100); {
	case dice < 21:
		return c.onKey(register)
	case dice < 37:
		return c.onKey(cas)
	case dice < 45:
		return c.onKey(mixed)
	case dice < 57:
		return c.onKey(counter)
	case dice < 61:
		return c.onKey(indexed)
	case dice < 64:
		return c.onKey(ranged)
	case dice < 67:
		return c.onKey(nearest)
	case dice < 72:
		return c.onKey(viewed)
	case dice < 84:
		return c.insertRow
	case dice < 94:
		return c.growPartition
	case dice < 97:
		return c.batch
	default:
		return c.scan
	}
}

func (c *Clients) onKey(kind string) func() func() {
	key := c.keys[kind]
	if key == nil || key.worn() {
		name, _ := c.keyIn(kind, c.part)
		key = &Key{name: name}
		c.keys[kind] = key
		c.mutex.Lock()
		c.all[kind] = append(c.all[kind], name)
		c.mutex.Unlock()
	}
	return func() func() {
		value, last := key.begin()
		op := &Op{Kind: kind, Key: key.name, Value: value, Expected: last}
		c.decide(op)
		return func() {
			op.Invoke = c.recorder.now()
			c.onRegister(op)
			op.Return = c.recorder.now()
			key.end(op)
			c.recorder.record(op)
		}
	}
}

// decide chooses what is done to a register.
func (c *Clients) decide(op *Op) {
	plain := func() {
		switch dice := c.random.IntN(20); {
		case dice < 9:
			op.Call, op.Value, op.Expected = "read", 0, 0
		case dice < 19:
			op.Call, op.Expected = "write", 0
		default:
			op.Call, op.Value, op.Expected = "delete", 0, 0
		}
	}
	conditional := func() {
		switch dice := c.random.IntN(20); {
		case dice < 5:
			op.Call, op.Value, op.Expected = "read", 0, 0
		case dice < 8 || op.Expected == 0:
			op.Call, op.Expected = "insert", 0
		case dice < 17:
			op.Call = "update"
		case dice < 18:
			op.Call, op.Value = "remove", 0
		default:
			op.Call, op.Expected = "touch", 0
		}
	}
	switch op.Kind {
	case register:
		plain()
	case cas:
		conditional()
	case mixed:
		if c.random.IntN(2) == 0 {
			plain()
		} else {
			conditional()
		}
	case counter:
		op.Expected = 0
		op.Call, op.Value = "add", 1+op.Value%3
		if c.random.IntN(3) == 0 {
			op.Call, op.Value = "read", 0
		}
	case indexed, ranged, nearest, viewed:
		// Values come again: a row loses one and gets it back.
		value := 1 + op.Value%searchValues
		plain()
		switch {
		case op.Call == "write":
			op.Value = value
		case op.Call == "read" && !searches[op.Kind].late && c.random.IntN(3) > 0:
			op.Call, op.Value = "find", value
		}
	}
}

func (c *Clients) onRegister(op *Op) { c.nodes.onRegister(op) }

// onRegister runs an operation on a register.
func (nodes Nodes) onRegister(op *Op) {
	table := tableOf[op.Kind]
	nodes.ask(op, func(ctx context.Context, node *Node, level gocql.Consistency) error {
		query := func(text string, values ...any) *gocql.Query {
			q := node.session.Query(text, values...).Consistency(level)
			if isConditional(op) {
				q = q.SerialConsistency(gocql.Serial)
			}
			return q
		}
		var value any = op.Value
		search, isSearched := searches[op.Kind]
		if isSearched {
			value = search.value(op.Key, op.Value)
		}
		applied := func(text string, values ...any) error {
			found := map[string]any{}
			done, err := query(text, values...).MapScanCASContext(ctx, found)
			op.Applied = done && err == nil
			if v, is := found["v"].(int64); is && err == nil && !done {
				op.Found = v
			}
			return err
		}
		switch op.Call {
		case "read":
			return read(ctx, op, query)
		case "find":
			return search.find(ctx, op, query)
		case "write":
			return query("INSERT INTO "+table+" (k, v) VALUES (?, ?)", op.Key, value).ExecContext(ctx)
		case "delete":
			return query("DELETE FROM "+table+" WHERE k = ?", op.Key).ExecContext(ctx)
		case "add":
			return query("UPDATE counters SET n = n + ? WHERE k = ?", value, op.Key).ExecContext(ctx)
		case "insert":
			return applied("INSERT INTO "+table+" (k, v) VALUES (?, ?) IF NOT EXISTS", op.Key, value)
		case "update":
			return applied("UPDATE "+table+" SET v = ? WHERE k = ? IF v = ?", value, op.Key, op.Expected)
		case "remove":
			return applied("DELETE FROM "+table+" WHERE k = ? IF v = ?", op.Key, op.Expected)
		case "touch":
			return applied("UPDATE "+table+" SET v = ? WHERE k = ? IF EXISTS", value, op.Key)
		}
		return errors.New("no such call: " + op.Call)
	})
}

type prepare = func(text string, values ...any) *gocql.Query

// none takes a row that is not there for an answer.
func none(err error) error {
	if errors.Is(err, gocql.ErrNotFound) {
		return nil
	}
	return err
}

func read(ctx context.Context, op *Op, query prepare) error {
	op.Found = 0
	switch op.Kind {
	case counter:
		return none(query("SELECT n FROM counters WHERE k = ?", op.Key).ScanContext(ctx, &op.Found))
	case indexed, ranged, nearest, viewed:
		return searches[op.Kind].read(ctx, op, query)
	default:
		return none(query("SELECT v FROM "+tableOf[op.Kind]+" WHERE k = ?", op.Key).ScanContext(ctx, &op.Found))
	}
}
