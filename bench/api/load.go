package main

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/bench/load"
)

// load sends a request repeatedly from several clients for a while. It returns the number of answers, the answers per second,
// and the 99th percentile of their time in milliseconds. Every answer has to pass the check.
func (s *server) load(
	clients int, window time.Duration, operation, body string, check func([]byte) error,
) (n int, rate, p99 float64, err error) {
	request, err := s.request(operation, body)
	if err != nil {
		return 0, 0, 0, err
	}
	var ready bytes.Buffer
	if err := request.Write(&ready); err != nil {
		return 0, 0, 0, err
	}
	times := make([][]time.Duration, clients)
	errs := make([]error, clients)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := &load.Client{Address: request.URL.Host}
			defer c.Close()
			for time.Since(began) < window && errs[i] == nil {
				at := time.Now()
				answer, err := c.Do(ready.Bytes())
				times[i] = append(times[i], time.Since(at))
				if err == nil {
					err = check(answer)
				}
				errs[i] = err
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	all := slices.Concat(times...)
	slices.Sort(all)
	return len(all), float64(len(all)) / elapsed.Seconds(), float64(all[len(all)*99/100].Microseconds()) / 1000, errors.Join(errs...)
}
