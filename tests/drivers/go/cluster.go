package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// upHosts is told by the driver which hosts are there; it sits below the token-aware policy.
type upHosts struct {
	gocql.HostSelectionPolicy
	mu sync.Mutex
	up map[string]bool
}

func (p *upHosts) set(host *gocql.HostInfo, up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if up {
		p.up[host.HostID()] = true
	} else {
		delete(p.up, host.HostID())
	}
}

func (p *upHosts) AddHost(host *gocql.HostInfo) {
	p.set(host, true)
	p.HostSelectionPolicy.AddHost(host)
}

func (p *upHosts) RemoveHost(host *gocql.HostInfo) {
	p.set(host, false)
	p.HostSelectionPolicy.RemoveHost(host)
}

func (p *upHosts) HostUp(host *gocql.HostInfo) {
	p.set(host, true)
	p.HostSelectionPolicy.HostUp(host)
}

func (p *upHosts) HostDown(host *gocql.HostInfo) {
	p.set(host, false)
	p.HostSelectionPolicy.HostDown(host)
}

func (p *upHosts) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.up)
}

// cluster does what it is told on standard input, against several nodes: see tests/cluster_drivers/programs.py.
func cluster(host string, port int, keyspace string) {
	hosts := &upHosts{HostSelectionPolicy: gocql.RoundRobinHostPolicy(), up: map[string]bool{}}
	config := gocql.NewCluster(host)
	config.Port, config.Keyspace = port, keyspace
	config.Consistency = gocql.Quorum
	config.ConnectTimeout = 10 * time.Second
	config.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(hosts)
	config.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 3}
	config.Logger = gocql.NewLogger(gocql.LogLevelNone)
	session, err := config.CreateSession()
	must(err)
	write := func(k int) error {
		return session.Query("INSERT INTO t (k, v) VALUES (?, ?)", k, k).Idempotent(true).Exec()
	}
	read := func(k int) error {
		var v int
		err := session.Query("SELECT v FROM t WHERE k = ?", k).Idempotent(true).Scan(&v)
		if err == nil && v != k {
			return fmt.Errorf("%d was read for %d", v, k)
		}
		return err
	}
	var stop atomic.Bool
	var workers sync.WaitGroup
	var operations, failures, worst atomic.Int64
	var first atomic.Value
	timed := func(run func(int) error, k int) {
		began := time.Now()
		if err := run(k); err != nil {
			failures.Add(1)
			first.CompareAndSwap(nil, err.Error())
		}
		operations.Add(1)
		for took := time.Since(began).Milliseconds(); ; {
			if longest := worst.Load(); took <= longest || worst.CompareAndSwap(longest, took) {
				return
			}
		}
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "nodes":
			fmt.Println(hosts.count())
		case "route":
			var from, count int
			fmt.Sscan(words[1], &from)
			fmt.Sscan(words[2], &count)
			for _, run := range []func(int) error{write, read} {
				for k := from; k < from+count; k++ {
					must(run(k))
				}
			}
			fmt.Println("done")
		case "load":
			for worker := 0; worker < 8; worker++ {
				workers.Add(1)
				go func(k int) {
					defer workers.Done()
					for ; !stop.Load(); k += 8 {
						timed(write, k)
						timed(read, k)
					}
				}(1_000_000 + worker)
			}
			fmt.Println("done")
		case "stop":
			stop.Store(true)
			workers.Wait()
			why, _ := first.Load().(string)
			fmt.Println(operations.Load(), failures.Load(), worst.Load(), why)
		}
	}
	session.Close()
}
