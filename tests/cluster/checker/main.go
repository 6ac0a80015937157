// A checker of a cluster: it puts load on the nodes, records each operation with its outcome, and says whether what the clients saw can be
// true of a store that is linearizable and loses nothing.
//
//	checker load  --nodes H:P,… --history FILE --rate N --seed N     load until a line comes on stdin, then reads everything back
//	checker check --history FILE [--faults FILE] [--report FILE] [--pictures FOLDER]
//	checker proxy NAME=LISTEN,UPSTREAM,http|tcp …                    proxies that fail as they are told by lines on stdin
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: checker load|check|proxy …")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	history := flags.String("history", "", "the file of recorded operations")
	switch os.Args[1] {
	case "load":
		nodes := flags.String("nodes", "", "HOST:PORT of each node that there ever is, by commas")
		rate := flags.Float64("rate", 200, "operations a second, of all clients together")
		seed := flags.Uint64("seed", 1, "of the clients' choices")
		_ = flags.Parse(os.Args[2:])
		if err := runLoad(strings.Split(*nodes, ","), *history, *rate, *seed); err != nil {
			fail(err.Error())
		}
	case "check":
		faults := flags.String("faults", "", "the file that says what was done to the nodes")
		report := flags.String("report", "", "where to write the report in Markdown")
		pictures := flags.String("pictures", "", "the folder for pictures of what can't be true")
		_ = flags.Parse(os.Args[2:])
		good, err := runCheck(*history, *faults, *report, *pictures)
		if err != nil {
			fail(err.Error())
		}
		if !good {
			os.Exit(1)
		}
	case "proxy":
		if err := runProxies(os.Args[2:]); err != nil {
			fail(err.Error())
		}
	default:
		fail("unknown command " + os.Args[1])
	}
}

func fail(words string) {
	fmt.Fprintln(os.Stderr, "checker: "+words)
	os.Exit(2)
}
