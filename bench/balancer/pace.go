package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/bench/load"
)

// pace sends requests at a rate that all rivals can carry, over connections that are kept. A request's time begins when it was due, so that one
// that waits for the one before it counts as slow too. At their limits, faster balancers look faster still: fewer requests wait.
func pace(address, path string, o options) (t turn, requests int, err error) {
	const clients = 32
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, address)
	each := time.Second * clients / time.Duration(o.rate)
	var mu sync.Mutex
	var all []time.Duration
	var wait sync.WaitGroup
	began := time.Now()
	for i := range clients {
		wait.Go(func() {
			c := load.Client{Address: address}
			defer c.Close()
			due := began.Add(each * time.Duration(i) / clients)
			var own []time.Duration
			var failed error
			for ; failed == nil && due.Sub(began) < o.duration; due = due.Add(each) {
				time.Sleep(time.Until(due))
				_, failed = c.Do(request)
				own = append(own, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
			if failed != nil {
				err = failed
			}
		})
	}
	wait.Wait()
	if err != nil {
		return t, 0, err
	}
	slices.Sort(all)
	t.perSecond = float64(len(all)) / time.Since(began).Seconds()
	t.p50, t.p99 = all[len(all)/2], all[len(all)*99/100]
	return t, len(all), nil
}
