package main

import (
	"fmt"
	"sort"
)

// sets checks what is written once and must stay: rows, partitions and batches. It gives a line for each fault.
func sets(kind string, ops []*Op) []string {
	switch kind {
	case row:
		return rows(ops)
	case partition:
		return partitions(ops)
	case batch:
		return batches(ops)
	case counter:
		return sums(ops)
	}
	return nil
}

// mayHold says what a read may, and what it must find of a write.
func mayHold(write, read *Op) (may, must bool) {
	may = write.Outcome != failed && write.Invoke <= read.Return
	must = write.Outcome == ok && write.Return < read.Invoke
	return may, must
}

// rows checks reads of single rows and scans of ranges.
func rows(ops []*Op) (faults []string) {
	writes := map[int64]*Op{}
	var order []*Op
	for _, op := range ops {
		if op.Call == "write" {
			writes[op.Value] = op
			order = append(order, op)
		}
	}
	sort.Slice(order, func(a, b int) bool { return token(order[a].Key) < token(order[b].Key) })
	tokens := make([]int64, len(order))
	for at, op := range order {
		tokens[at] = token(op.Key)
	}
	byKey := map[string]*Op{}
	for _, op := range order {
		byKey[op.Key] = op
	}
	for _, op := range ops {
		switch {
		case op.Outcome != ok:
		case op.Call == "read":
			may, must := mayHold(byKey[op.Key], op)
			if found := op.Found != 0; found && !may || !found && must || found && op.Found != byKey[op.Key].Value {
				faults = append(faults, fmt.Sprintf("row %s was written (%s) and reads %d", op.Key, byKey[op.Key].Outcome, op.Found))
			}
		case op.Call == "scan":
			from := sort.Search(len(tokens), func(at int) bool { return tokens[at] >= op.First })
			to := sort.Search(len(tokens), func(at int) bool { return tokens[at] > op.Last })
			faults = append(faults, compare(op, writes, order[from:to])...)
		}
	}
	return faults
}

// compare checks what a scan has found against what it was to find.
func compare(scan *Op, writes map[int64]*Op, within []*Op) (faults []string) {
	found := map[int64]int{}
	for _, value := range scan.Rows {
		found[value]++
		write := writes[value]
		if write == nil {
			faults = append(faults, fmt.Sprintf("a scan of %s found %d, which nobody wrote", scan.Kind, value))
			continue
		}
		if may, _ := mayHold(write, scan); !may {
			faults = append(faults, fmt.Sprintf("a scan found %s %d, whose write has failed or had not begun", write.Key, value))
		}
		if found[value] == 2 {
			faults = append(faults, fmt.Sprintf("a scan found %s %d twice", write.Key, value))
		}
	}
	for _, write := range within {
		if _, must := mayHold(write, scan); must && found[write.Value] == 0 {
			faults = append(faults, fmt.Sprintf("a scan missed %s %d, which was acknowledged %d ms before it began",
				write.Key, write.Value, (scan.Invoke-write.Return)/1e6))
		}
	}
	return faults
}

func byKey(ops []*Op) map[string][]*Op {
	keys := map[string][]*Op{}
	for _, op := range ops {
		keys[op.Key] = append(keys[op.Key], op)
	}
	return keys
}

// partitions checks reads of whole partitions.
func partitions(ops []*Op) (faults []string) {
	for _, ops := range byKey(ops) {
		writes := map[int64]*Op{}
		var within []*Op
		for _, op := range ops {
			if op.Call == "write" {
				writes[op.Value] = op
				within = append(within, op)
			}
		}
		for _, op := range ops {
			if op.Call != "scan" || op.Outcome != ok {
				continue
			}
			faults = append(faults, compare(op, writes, within)...)
			if !sort.SliceIsSorted(op.Rows, func(a, b int) bool { return op.Rows[a] < op.Rows[b] }) {
				faults = append(faults, "partition "+op.Key+" was read out of order")
			}
		}
	}
	return faults
}

// batches checks that each is there whole or not at all.
func batches(ops []*Op) (faults []string) {
	for key, ops := range byKey(ops) {
		var write *Op
		for _, op := range ops {
			if op.Call == "write" {
				write = op
			}
		}
		for _, op := range ops {
			if op.Call != "read" || op.Outcome != ok || write == nil {
				continue
			}
			whole := op.Found == rowsPerBatch
			if !whole && op.Found != 0 || !whole && write.Outcome == ok || whole && write.Outcome == failed {
				faults = append(faults, fmt.Sprintf("%s (%s) has %d of %d rows", key, write.Outcome, op.Found, rowsPerBatch))
			}
		}
	}
	return faults
}

// sums checks that counters are between what was acknowledged and what was tried.
func sums(ops []*Op) (faults []string) {
	for key, ops := range byKey(ops) {
		var least, most int64
		for _, op := range ops {
			if op.Call == "add" && op.Outcome == ok {
				least += op.Value
			}
			if op.Call == "add" && op.Outcome != failed {
				most += op.Value
			}
		}
		for _, op := range ops {
			if op.Final && op.Call == "read" && (op.Found < least || op.Found > most) {
				faults = append(faults, fmt.Sprintf("counter %s is %d in the end, not %d to %d", key, op.Found, least, most))
			}
		}
	}
	return faults
}
