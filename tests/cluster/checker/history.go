package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// What an operation is about. Those of the first kinds are registers, each of which has a history that must be linearizable.
const (
	register  = "register"  // plain writes and reads of a row
	cas       = "cas"       // the same under conditions
	mixed     = "mixed"     // both on one row
	indexed   = "index"     // a row that is also found by a secondary index
	ranged    = "range"     // a row that is also found by a range of an index in the order of values
	nearest   = "nearest"   // a row that is also found by its vector
	viewed    = "view"      // a row that is also in a materialized view
	counter   = "counter"   // increments and reads
	row       = "row"       // a row that is written once
	partition = "partition" // rows of one partition, each written once
	batch     = "batch"     // a logged batch over several partitions
)

// What became of an operation.
const (
	ok      = "ok"
	failed  = "fail"    // it surely has not happened
	unknown = "unknown" // it may have happened, or may happen yet
)

// Op is one operation of a client, once. Times are in nanoseconds since the history began.
type Op struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// write, delete, insert (if there is none), update (if it is Expected), remove (likewise), touch (write if there is one), add, read,
	// find (by a search whether the row has Value), scan.
	Call     string `json:"call"`
	Value    int64  `json:"value,omitempty"`
	Expected int64  `json:"expected,omitempty"`
	// What was read; zero is no row.
	Found   int64   `json:"found,omitempty"`
	Applied bool    `json:"applied,omitempty"`
	Rows    []int64 `json:"rows,omitempty"`
	// The tokens of a scan, both included.
	First int64 `json:"first,omitempty"`
	Last  int64 `json:"last,omitempty"`

	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	// Something that no history allows, in words.
	Wrong  string `json:"wrong,omitempty"`
	Node   string `json:"node,omitempty"`
	Level  string `json:"level,omitempty"`
	Invoke int64  `json:"invoke"`
	Return int64  `json:"return"`
	// Read back at the end, when all nodes are well.
	Final bool `json:"final,omitempty"`
}

// Header is the first line of a history.
type Header struct {
	BeganUnixNs int64   `json:"began_unix_ns"`
	Rate        float64 `json:"rate"`
	Seed        uint64  `json:"seed"`
}

// Recorder writes operations as they return.
type Recorder struct {
	began time.Time
	mutex sync.Mutex
	file  *os.File
	out   *bufio.Writer
	count map[string]int
}

func newRecorder(path string, rate float64, seed uint64) (*Recorder, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	r := &Recorder{began: time.Now(), file: file, out: bufio.NewWriter(file), count: map[string]int{}}
	return r, r.line(Header{r.began.UnixNano(), rate, seed})
}

func (r *Recorder) line(what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = r.out.Write(append(text, '\n'))
	return err
}

// now is the time since the history began.
func (r *Recorder) now() int64 { return int64(time.Since(r.began)) }

func (r *Recorder) record(op *Op) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.count[op.Outcome]++
	if err := r.line(op); err != nil {
		fail(err.Error())
	}
}

func (r *Recorder) progress() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return fmt.Sprintf("%d ok, %d failed, %d unknown", r.count[ok], r.count[failed], r.count[unknown])
}

func (r *Recorder) close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.out.Flush(); err != nil {
		return err
	}
	return r.file.Close()
}

// eachLine calls f with every line of a file of JSON lines.
func eachLine(path string, f func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 256<<20)
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

func readHistory(path string) (header Header, ops []*Op, err error) {
	first := true
	err = eachLine(path, func(line []byte) error {
		if first {
			first = false
			return json.Unmarshal(line, &header)
		}
		op := &Op{}
		if err := json.Unmarshal(line, op); err != nil {
			return err
		}
		ops = append(ops, op)
		return nil
	})
	return header, ops, err
}
