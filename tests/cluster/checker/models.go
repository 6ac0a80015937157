package main

import (
	"fmt"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// How long one key's history may take to be decided.
const decideTimeout = 30 * time.Second

// step is the register that each kind of key is: its state is the value of the row, zero if there is none, and of a counter its sum.
func step(state any, input any, _ any) (bool, any) {
	now, op := state.(int64), input.(*Op)
	open := op.Outcome == unknown
	// A condition that held, did not hold, or may have held.
	conditional := func(holds bool, next int64) (bool, any) {
		switch {
		case open && holds:
			return true, next
		case open:
			return true, now
		case op.Applied:
			return holds, next
		default:
			return !holds && op.Found == now, now
		}
	}
	switch op.Call {
	case "read":
		return op.Found == now, now
	case "find":
		return (op.Found != 0) == (now == op.Value), now
	case "write":
		return true, op.Value
	case "delete":
		return true, int64(0)
	case "add":
		return true, now + op.Value
	case "insert":
		return conditional(now == 0, op.Value)
	case "update":
		return conditional(now == op.Expected, op.Value)
	case "remove":
		return conditional(now == op.Expected, 0)
	case "touch":
		return conditional(now != 0, op.Value)
	}
	return false, now
}

func describe(input, _ any) string {
	op := input.(*Op)
	text := op.Call
	switch op.Call {
	case "read":
		text = fmt.Sprintf("read: %d", op.Found)
	case "find":
		text = fmt.Sprintf("find %d: %t", op.Value, op.Found != 0)
	case "write", "add", "insert", "touch":
		text = fmt.Sprintf("%s %d", op.Call, op.Value)
	case "update":
		text = fmt.Sprintf("%d if %d", op.Value, op.Expected)
	case "remove":
		text = fmt.Sprintf("remove if %d", op.Expected)
	}
	switch {
	case op.Outcome == unknown:
		text += ": ?"
	case isConditional(op) && op.Applied:
		text += ": applied"
	case isConditional(op):
		text += fmt.Sprintf(": not, it is %d", op.Found)
	}
	return text
}

var model = porcupine.Model{
	Init:              func() any { return int64(0) },
	Step:              step,
	DescribeOperation: describe,
	DescribeState:     func(state any) string { return fmt.Sprint(state) },
	DescribeOperationMetadata: func(info any) string {
		op := info.(*Op)
		return fmt.Sprintf("%s at %s, %s %s", op.Level, op.Node, op.Outcome, op.Error)
	},
}

// history is what the model judges of a key's operations: what surely has not happened is left out, as are reads without an answer.
// What may have happened may do so at any time from then on.
func history(ops []*Op) []porcupine.Operation {
	end := int64(0)
	for _, op := range ops {
		end = max(end, op.Return)
	}
	var judged []porcupine.Operation
	for _, op := range ops {
		reads := op.Call == "read" || op.Call == "find"
		if op.Outcome == failed || reads && op.Outcome != ok {
			continue
		}
		returned := op.Return
		if op.Outcome == unknown {
			returned = end + 1
		}
		judged = append(judged, porcupine.Operation{Input: op, Call: op.Invoke, Output: op, Return: returned, Metadata: op})
	}
	lanes(judged)
	return judged
}

// lanes gives operations that overlap different clients, for the picture.
func lanes(judged []porcupine.Operation) {
	sort.Slice(judged, func(a, b int) bool { return judged[a].Call < judged[b].Call })
	var free []int64
	for at := range judged {
		lane := 0
		for lane < len(free) && free[lane] >= judged[at].Call {
			lane++
		}
		if lane == len(free) {
			free = append(free, 0)
		}
		free[lane] = judged[at].Return
		judged[at].ClientId = lane
	}
}

// judge says whether a key's history is linearizable; with a folder, a picture of one that is not is put there.
func judge(key string, ops []*Op, pictures string) porcupine.CheckResult {
	judged := history(ops)
	result := porcupine.CheckOperationsTimeout(model, judged, decideTimeout)
	if result == porcupine.Illegal && pictures != "" {
		_, info := porcupine.CheckOperationsVerbose(model, judged, decideTimeout)
		if err := porcupine.VisualizePath(model, info, pictures+"/"+key+".html"); err != nil {
			fmt.Println(err)
		}
	}
	return result
}
