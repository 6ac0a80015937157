package main

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// reportOf is the whole report, in Markdown.
func reportOf(header Header, ops []*Op, faults []*Fault, verdicts []*Verdict) string {
	var text strings.Builder
	var end int64
	load, total := 0, 0
	for _, op := range ops {
		total++
		if !op.Final {
			load++
			end = max(end, op.Return)
		}
	}
	fmt.Fprintf(&text, "%d operations in %s of load (%.0f a second asked for, seed %d), and %d that read everything back; %d faults.\n\n",
		load, time.Duration(end).Round(time.Second), header.Rate, header.Seed, total-load, len(faults))
	text.WriteString(verdictTable(verdicts))
	text.WriteString("\n")
	if len(faults) > 0 {
		text.WriteString("\n" + faultTable(ops, faults))
	}
	text.WriteString("\n" + latencies(ops, faults))
	return text.String()
}

// faultTable sums the effects of each kind of fault up.
func faultTable(ops []*Op, faults []*Fault) string {
	sort.Slice(ops, func(a, b int) bool { return ops[a].Invoke < ops[b].Invoke })
	type sum struct {
		times               int
		recoveries          []time.Duration
		gap, slowest        time.Duration
		ok, failed, unknown int
		settled             time.Duration
	}
	sums := map[string]*sum{}
	var order []string
	for _, fault := range faults {
		effect := effectOf(fault, ops)
		s := sums[fault.Kind]
		if s == nil {
			s = &sum{}
			sums[fault.Kind] = s
			order = append(order, fault.Kind)
		}
		s.times++
		s.recoveries = append(s.recoveries, effect.recovery)
		s.gap, s.slowest = max(s.gap, effect.gap), max(s.slowest, effect.slowest)
		s.ok, s.failed, s.unknown = s.ok+effect.ok, s.failed+effect.failed, s.unknown+effect.unknown
		s.settled = max(s.settled, time.Duration(fault.Settled-fault.From))
	}
	sort.Strings(order)
	var text strings.Builder
	text.WriteString("| fault | times | until all keys answered, median | longest | longest without an answer of a key that was asked | slowest answer | ok | failed | unknown | all at rest after |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, kind := range order {
		s := sums[kind]
		sort.Slice(s.recoveries, func(a, b int) bool { return s.recoveries[a] < s.recoveries[b] })
		fmt.Fprintf(&text, "| %s | %d | %s | %s | %s | %s | %d | %d | %d | %.1f s |\n", kind, s.times, ms(s.recoveries[s.times/2]),
			ms(s.recoveries[s.times-1]), ms(s.gap), ms(s.slowest), s.ok, s.failed, s.unknown, s.settled.Seconds())
	}
	return text.String()
}

// latencies are those of answers outside of all faults.
func latencies(ops []*Op, faults []*Fault) string {
	var reads, changes []time.Duration
	for _, op := range ops {
		if op.Final || op.Outcome != ok || op.Call == "scan" || op.Kind == batch || during(op, faults) {
			continue
		}
		took := time.Duration(op.Return - op.Invoke)
		if writes(op) {
			changes = append(changes, took)
		} else {
			reads = append(reads, took)
		}
	}
	return "Apart from faults: " + quantiles("reads", reads) + "; " + quantiles("writes", changes) + ".\n"
}

func during(op *Op, faults []*Fault) bool {
	for _, fault := range faults {
		if op.Invoke <= fault.until && op.Return >= fault.From {
			return true
		}
	}
	return false
}

func quantiles(what string, took []time.Duration) string {
	if len(took) == 0 {
		return "no " + what
	}
	sort.Slice(took, func(a, b int) bool { return took[a] < took[b] })
	at := func(share float64) string {
		return fmt.Sprintf("%.1f", float64(took[int(share*float64(len(took)-1))].Microseconds())/1000)
	}
	return fmt.Sprintf("%s p50 %s ms, p99 %s ms, p99.9 %s ms, longest %s ms", what, at(0.5), at(0.99), at(0.999), at(1))
}
