package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const keyspace = "checker"

const (
	// Longer than a node takes to give a request up.
	requestTimeout = 12 * time.Second
	// A node that has not answered is avoided for so long.
	avoidFor = 500 * time.Millisecond
)

// Node is one node, with a session that speaks to it alone and tries nothing twice.
type Node struct {
	name    string
	session *gocql.Session
	// Until when it is avoided, in Unix nanoseconds.
	avoided atomic.Int64
}

// neverDown keeps gocql from giving a node up: whether it answers is to be seen by each request.
type neverDown struct{}

func (neverDown) AddFailure(error, *gocql.HostInfo) bool { return false }
func (neverDown) Reset(*gocql.HostInfo)                  {}

func connect(address string, inKeyspace string) (*Node, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := gocql.NewCluster(host)
	config.Port, err = strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	config.Keyspace = inKeyspace
	config.Timeout, config.ConnectTimeout, config.WriteTimeout = requestTimeout, 2*time.Second, 2*time.Second
	config.NumConns = 2
	// The node's id is to be known from the beginning: gocql takes one that it hears of later for another host at the same address, ends
	// the connections in use, and may then find no host at all until it looks again.
	config.DisableInitialHostLookup = false
	// What it hears of other nodes is not for this session.
	config.HostFilter = gocql.HostFilterFunc(func(found *gocql.HostInfo) bool { return found.ConnectAddress().String() == host })
	config.DefaultTimestamp = false
	config.RetryPolicy = nil
	config.ConvictionPolicy = neverDown{}
	config.ReconnectInterval = 300 * time.Millisecond
	config.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: 100 * time.Millisecond}
	config.Events.DisableNodeStatusEvents = true
	config.Events.DisableTopologyEvents = true
	config.Events.DisableSchemaEvents = true
	session, err := config.CreateSession()
	if err != nil {
		return nil, err
	}
	return &Node{name: address, session: session}, nil
}

// Nodes are all that there ever are; some may be down.
type Nodes []*Node

// order gives all of them by chance, those first that have answered lately.
func (nodes Nodes) order() Nodes {
	now := time.Now().UnixNano()
	var first, last Nodes
	for _, at := range rand.Perm(len(nodes)) {
		if nodes[at].avoided.Load() < now {
			first = append(first, nodes[at])
		} else {
			last = append(last, nodes[at])
		}
	}
	return append(first, last...)
}

func (n *Node) avoid() { n.avoided.Store(time.Now().Add(avoidFor).UnixNano()) }

// notSent is true if the request never left: another node may be asked, as the same operation.
func notSent(err error) bool {
	return errors.Is(err, gocql.ErrNoConnections) || errors.Is(err, gocql.ErrNoStreams)
}

// outcomeOf says what an error leaves open.
func outcomeOf(err error) string {
	if err == nil {
		return ok
	}
	if notSent(err) {
		return failed
	}
	var answer gocql.RequestError
	if !errors.As(err, &answer) {
		return unknown
	}
	switch answer.Code() {
	case gocql.ErrCodeUnavailable, gocql.ErrCodeOverloaded, gocql.ErrCodeBootstrapping, gocql.ErrCodeInvalid:
		return failed
	default:
		return unknown
	}
}

var levels = []gocql.Consistency{gocql.One, gocql.LocalQuorum, gocql.Quorum}

// ask runs one operation at some node. `what` may be called again only if nothing was sent.
func (nodes Nodes) ask(op *Op, what func(ctx context.Context, node *Node, level gocql.Consistency) error) {
	level := levels[rand.IntN(len(levels))]
	op.Level = level.String()
	var err error
	for _, node := range nodes.order() {
		op.Node = node.name
		slow := time.AfterFunc(avoidFor, node.avoid)
		err = what(context.Background(), node, level)
		slow.Stop()
		if err == nil {
			break
		}
		if outcome := outcomeOf(err); outcome == unknown || notSent(err) {
			node.avoid()
		}
		if !notSent(err) {
			break
		}
	}
	op.Outcome = outcomeOf(err)
	if err != nil {
		op.Error = err.Error()
	}
}
