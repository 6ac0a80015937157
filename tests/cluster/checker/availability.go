package main

import (
	"encoding/json"
	"sort"
	"time"
)

// slow is what an answer takes when something is wrong.
const slow = 300 * time.Millisecond

// Fault is something that was done to the nodes. Times are Unix nanoseconds in the file, and since the history began here.
type Fault struct {
	Kind string `json:"kind"`
	// Which node, or what.
	Target string `json:"target"`
	From   int64  `json:"from"`
	// When it was undone (the node started again, say).
	To int64 `json:"to"`
	// When all nodes were there again and every tablet at rest.
	Settled int64 `json:"settled"`
	// The time at which the next one began, or the load ended.
	until int64
}

func readFaults(path string, header Header) ([]*Fault, error) {
	if path == "" {
		return nil, nil
	}
	var faults []*Fault
	err := eachLine(path, func(line []byte) error {
		fault := &Fault{}
		if err := json.Unmarshal(line, fault); err != nil {
			return err
		}
		fault.From -= header.BeganUnixNs
		fault.To -= header.BeganUnixNs
		fault.Settled -= header.BeganUnixNs
		faults = append(faults, fault)
		return nil
	})
	for at := range faults {
		faults[at].until = faults[at].Settled
	}
	return faults, err
}

// Effect is what clients saw of a fault.
type Effect struct {
	// From the fault until every part of the ring answered again, reads and writes.
	recovery time.Duration
	// The longest that a part of the ring gave no answer while it was asked.
	gap     time.Duration
	slowest time.Duration
	ok      int
	failed  int
	unknown int
}

func writes(op *Op) bool {
	return op.Call != "read" && op.Call != "find" && op.Call != "scan"
}

// point is an operation that belongs to one part of the ring.
type point struct {
	invoke, ret int64
	good        bool
}

// effectOf looks at the operations that ran between a fault and its end. `ops` are ordered by their beginning.
func effectOf(fault *Fault, ops []*Op) Effect {
	var effect Effect
	parts := map[[2]int][]point{}
	for _, op := range ops {
		if op.Final || op.Return < fault.From || op.Invoke > fault.until {
			continue
		}
		switch op.Outcome {
		case ok:
			effect.ok++
			effect.slowest = max(effect.slowest, time.Duration(op.Return-op.Invoke))
		case failed:
			effect.failed++
		default:
			effect.unknown++
		}
		if op.Kind == batch || op.Kind == row && op.Call == "scan" {
			continue
		}
		way := 0
		if writes(op) {
			way = 1
		}
		at := [2]int{bucket(op.Key), way}
		parts[at] = append(parts[at], point{op.Invoke, op.Return, op.Outcome == ok})
	}
	for _, points := range parts {
		effect.look(fault, points)
	}
	return effect
}

// look finds the times in which a part of the ring was asked and did not answer.
func (e *Effect) look(fault *Fault, points []point) {
	sort.Slice(points, func(a, b int) bool { return points[a].ret < points[b].ret })
	last := fault.From
	for at, answer := range points {
		if !answer.good {
			continue
		}
		silent := answer.ret-last > int64(slow)
		if bad := asked(points, at, last, answer); silent && bad != 0 {
			e.gap = max(e.gap, time.Duration(answer.ret-bad))
			e.recovery = max(e.recovery, time.Duration(answer.ret-fault.From))
		}
		last = max(last, answer.ret)
	}
}

// asked gives the time since which this part was asked in vain when it answered; zero if it was not.
func asked(points []point, at int, last int64, answer point) int64 {
	since := int64(0)
	note := func(invoke int64) {
		if begun := max(invoke, last); since == 0 || begun < since {
			since = begun
		}
	}
	if answer.ret-max(answer.invoke, last) > int64(slow) {
		note(answer.invoke)
	}
	for before := at - 1; before >= 0 && points[before].ret > last; before-- {
		if !points[before].good {
			note(points[before].invoke)
		}
	}
	return since
}
