package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// How a proxy treats what it is asked.
const (
	pass   = "pass"   // on to the upstream
	hang   = "hang"   // not at all until told otherwise; connections stay open
	mute   = "mute"   // on to the upstream, but nothing comes back (HTTP)
	refuse = "refuse" // the connection is closed
	busy   = "busy"   // answered 503 (HTTP)
	flaky  = "flaky"  // one in five is answered 503, one PUT in five 500 although it took effect, some late (HTTP)
)

// Proxy stands between a node and something else.
type Proxy struct {
	upstream string
	mutex    sync.Mutex
	mode     string
	changed  chan struct{}
	open     map[net.Conn]bool
}

func (p *Proxy) set(mode string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.mode = mode
	close(p.changed)
	p.changed = make(chan struct{})
	if mode == refuse {
		for connection := range p.open {
			connection.Close()
		}
	}
}

func (p *Proxy) now() (string, chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.mode, p.changed
}

var errGone = errors.New("gone")

// wait returns when the mode is none of these; an error if the other side has gone first.
func (p *Proxy) wait(gone <-chan struct{}, modes ...string) error {
	for {
		mode, changed := p.now()
		if !strings.Contains(strings.Join(modes, " "), mode) {
			return nil
		}
		select {
		case <-changed:
		case <-gone:
			return errGone
		}
	}
}

func (p *Proxy) serveHTTP(listener net.Listener) error {
	target := &url.URL{Scheme: "http", Host: p.upstream}
	forward := &httputil.ReverseProxy{
		// The host stays the one that the client has signed.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			panic(http.ErrAbortHandler)
		},
		ModifyResponse: func(answer *http.Response) error {
			gone := answer.Request.Context().Done()
			if err := p.wait(gone, mute); err != nil {
				return err
			}
			mode, _ := p.now()
			if mode == flaky && answer.Request.Method == http.MethodPut && rand.IntN(5) == 0 {
				answer.Body.Close()
				answer.StatusCode, answer.Status = 500, "500 Internal Server Error"
				answer.Header = http.Header{"Content-Length": {"0"}}
				answer.Body, answer.ContentLength = http.NoBody, 0
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.wait(r.Context().Done(), hang) != nil {
			panic(http.ErrAbortHandler)
		}
		mode, _ := p.now()
		switch {
		case mode == refuse:
			panic(http.ErrAbortHandler)
		case mode == busy, mode == flaky && rand.IntN(5) == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case mode == flaky && rand.IntN(5) == 0:
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		}
		forward.ServeHTTP(w, r)
	})}
	return server.Serve(listener)
}

func (p *Proxy) serveTCP(listener net.Listener) error {
	for {
		near, err := listener.Accept()
		if err != nil {
			return err
		}
		go p.carry(near)
	}
}

func (p *Proxy) carry(near net.Conn) {
	defer near.Close()
	if mode, _ := p.now(); mode == refuse {
		return
	}
	far, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer far.Close()
	p.keep(near, far)
	defer p.drop(near, far)
	gone := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(gone) }) }
	copyAll := func(to, from net.Conn) {
		defer end()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if p.wait(gone, hang) != nil {
				return
			}
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go copyAll(near, far)
	go copyAll(far, near)
	<-gone
}

func (p *Proxy) keep(connections ...net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, c := range connections {
		p.open[c] = true
	}
}

func (p *Proxy) drop(connections ...net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, c := range connections {
		delete(p.open, c)
	}
}

// runProxies serves until stdin ends. A line `NAME MODE` is answered with `ok`.
func runProxies(specs []string) error {
	proxies := map[string]*Proxy{}
	for _, spec := range specs {
		name, rest, _ := strings.Cut(spec, "=")
		parts := strings.Split(rest, ",")
		if len(parts) != 3 {
			return fmt.Errorf("%s: it is NAME=LISTEN,UPSTREAM,http|tcp", spec)
		}
		listener, err := net.Listen("tcp", parts[0])
		if err != nil {
			return err
		}
		p := &Proxy{upstream: parts[1], mode: pass, changed: make(chan struct{}), open: map[net.Conn]bool{}}
		proxies[name] = p
		if parts[2] == "http" {
			go func() { _ = p.serveHTTP(listener) }()
		} else {
			go func() { _ = p.serveTCP(listener) }()
		}
	}
	fmt.Println("ok")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		name, mode, _ := strings.Cut(lines.Text(), " ")
		p, known := proxies[name]
		if !known {
			return fmt.Errorf("no proxy %s", name)
		}
		p.set(mode)
		fmt.Println("ok")
	}
	return lines.Err()
}
