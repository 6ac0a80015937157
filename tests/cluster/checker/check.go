package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"

	"github.com/anishathalye/porcupine"
)

var kinds = []string{register, cas, mixed, indexed, ranged, nearest, viewed, counter, row, partition, batch}

// Verdict is what a kind's operations come to.
type Verdict struct {
	kind      string
	ops       []*Op
	keys      int
	undecided int
	faults    []string
}

// runCheck judges a history and prints the report; true if there is no fault.
func runCheck(path, faults, report, pictures string) (bool, error) {
	header, ops, err := readHistory(path)
	if err != nil {
		return false, err
	}
	done, err := readFaults(faults, header)
	if err != nil {
		return false, err
	}
	if pictures != "" {
		if err := os.MkdirAll(pictures, 0o755); err != nil {
			return false, err
		}
	}
	good := true
	var verdicts []*Verdict
	for _, kind := range kinds {
		verdict := verdictOf(kind, ops, pictures)
		verdicts = append(verdicts, verdict)
		good = good && len(verdict.faults) == 0 && verdict.undecided == 0
	}
	text := reportOf(header, ops, done, verdicts)
	fmt.Print(text)
	if report != "" {
		if err := os.WriteFile(report, []byte(text), 0o644); err != nil {
			return false, err
		}
	}
	return good, nil
}

func verdictOf(kind string, all []*Op, pictures string) *Verdict {
	verdict := &Verdict{kind: kind}
	for _, op := range all {
		if op.Kind != kind {
			continue
		}
		verdict.ops = append(verdict.ops, op)
		if op.Wrong != "" {
			verdict.faults = append(verdict.faults, op.Key+": "+op.Wrong)
		}
	}
	keys := byKey(verdict.ops)
	verdict.keys = len(keys)
	if _, isRegister := tableOf[kind]; isRegister {
		verdict.judgeAll(keys, pictures)
	}
	verdict.faults = append(verdict.faults, sets(kind, verdict.ops)...)
	sort.Strings(verdict.faults)
	return verdict
}

// judgeAll judges each key's history, as many at a time as there are cores.
func (v *Verdict) judgeAll(keys map[string][]*Op, pictures string) {
	var mutex sync.Mutex
	var judges sync.WaitGroup
	names := make(chan string)
	for range runtime.NumCPU() {
		judges.Add(1)
		go func() {
			defer judges.Done()
			for key := range names {
				result := judge(key, keys[key], pictures)
				mutex.Lock()
				switch result {
				case porcupine.Illegal:
					v.faults = append(v.faults, "the history of "+key+" is not linearizable")
				case porcupine.Unknown:
					v.undecided++
				}
				mutex.Unlock()
			}
		}()
	}
	for key := range keys {
		names <- key
	}
	close(names)
	judges.Wait()
}

func (v *Verdict) words() string {
	switch {
	case len(v.faults) > 0:
		return fmt.Sprintf("**%d faults**", len(v.faults))
	case v.undecided > 0:
		return fmt.Sprintf("**%d keys undecided**", v.undecided)
	}
	switch v.kind {
	case row, partition:
		return "none lost, none from nowhere"
	case batch:
		return "whole or not at all"
	case counter:
		return "linearizable, sums exact"
	default:
		return "linearizable"
	}
}

func verdictTable(verdicts []*Verdict) string {
	var text strings.Builder
	text.WriteString("| operations on | keys | ok | failed | unknown | verdict |\n|---|---|---|---|---|---|\n")
	for _, v := range verdicts {
		count := map[string]int{}
		for _, op := range v.ops {
			count[op.Outcome]++
		}
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %s |\n", names[v.kind], v.keys, count[ok], count[failed], count[unknown], v.words())
	}
	for _, v := range verdicts {
		for at, fault := range v.faults {
			if at == 20 {
				fmt.Fprintf(&text, "\n… and %d more of %s", len(v.faults)-at, v.kind)
				break
			}
			fmt.Fprintf(&text, "\nFAULT %s: %s", v.kind, fault)
		}
	}
	return text.String()
}

var names = map[string]string{
	register:  "rows, plain writes and reads",
	cas:       "rows under conditions",
	mixed:     "rows with both",
	indexed:   "rows by key and by index",
	ranged:    "rows by key and by ranges of an index",
	nearest:   "rows by key and by their vectors",
	viewed:    "rows by key, and in the end by a view",
	counter:   "counters",
	row:       "rows written once, by key and by ranges",
	partition: "partitions that grow, by pages",
	batch:     "logged batches over 5 partitions",
}
