package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// loads is how often the page's first paint is measured.
const loads = 7

// watchers are who looks at the console.
type watchers struct {
	ctx      context.Context
	endpoint string
	browser  context.Context // in which loading is measured
	close    context.CancelFunc
	leave    context.CancelFunc

	bytes, changes, reloads atomic.Int64
}

func newWatchers(ctx context.Context, endpoint string) *watchers {
	w := &watchers{endpoint: endpoint}
	w.browser, w.close = chromium(ctx)
	w.ctx, w.leave = context.WithCancel(ctx)
	return w
}

// chromium starts a browser. Tabs of one would share its six connections to the control plane.
func chromium(ctx context.Context) (context.Context, context.CancelFunc) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 800))
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	tab, _ := chromedp.NewContext(allocator) // it ends with its browser
	return tab, end
}

// paint loads the page anew several times, and says when there was something to see.
func (w *watchers) paint() error {
	var paints, answers []float64
	var nodes int
	for range loads {
		var first, answer float64
		err := chromedp.Run(w.browser,
			chromedp.Navigate("about:blank"),
			chromedp.Navigate(w.endpoint+"/console/"),
			chromedp.Poll(`performance.getEntriesByName('first-contentful-paint').length > 0`, nil, chromedp.WithPollingInterval(20*time.Millisecond)),
			chromedp.Evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`, &first),
			chromedp.Evaluate(`performance.getEntriesByType('navigation')[0].responseStart`, &answer),
			chromedp.Evaluate(`document.querySelectorAll('.node').length`, &nodes),
		)
		if err != nil {
			return fmt.Errorf("this needs Chromium (Debian's package chromium): %w", err)
		}
		paints, answers = append(paints, first), append(answers, answer)
	}
	slices.Sort(paints)
	slices.Sort(answers)
	fmt.Printf("the page, with %d nodes: first contentful paint after %.0f ms (%.0f … %.0f), its first byte after %.0f ms\n",
		nodes, paints[loads/2], paints[0], paints[loads-1], answers[loads/2])
	return chromedp.Run(w.browser, chromedp.Navigate("about:blank"))
}

// address is the page that a watcher looks at.
func (w *watchers) address(i int, o options) string {
	return fmt.Sprintf("%s/console/?page=%d", w.endpoint, 1+i%o.pages)
}

// watch opens the pages.
func (w *watchers) watch(o options) error {
	for i := range o.browsers {
		tab, _ := chromium(w.ctx)
		chromedp.ListenTarget(tab, w.hear)
		err := chromedp.Run(tab, network.Enable(), chromedp.Navigate(w.address(i, o)),
			chromedp.Poll(`document.getElementById('link').textContent === 'live'`, nil, chromedp.WithPollingInterval(100*time.Millisecond)))
		if err != nil {
			return err
		}
	}
	for i := range o.readers {
		go w.read(w.address(i, o))
	}
	return nil
}

// hear counts what a tab is sent.
func (w *watchers) hear(event any) {
	switch e := event.(type) {
	case *network.EventDataReceived:
		w.bytes.Add(max(e.EncodedDataLength, e.DataLength))
	case *network.EventEventSourceMessageReceived:
		w.changes.Add(1)
		if e.EventName == "reload" {
			w.reloads.Add(1)
		}
	}
}

// read reads a page's changes, loading it anew when it must.
func (w *watchers) read(address string) {
	for w.ctx.Err() == nil {
		r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, address+"&live=", nil)
		if err != nil {
			return
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		in := bufio.NewReaderSize(resp.Body, 64<<10)
		for {
			line, err := in.ReadSlice('\n')
			w.bytes.Add(int64(len(line)))
			if strings.HasPrefix(string(line), "event: change") {
				w.changes.Add(1)
			}
			if err != nil && err != bufio.ErrBufferFull {
				break
			}
		}
		w.reloads.Add(1)
		resp.Body.Close() //nolint:errcheck // it was only read
	}
}

// start begins to count.
func (w *watchers) start() {
	w.bytes.Store(0)
	w.changes.Store(0)
	w.reloads.Store(0)
}

// told says what the watchers were sent.
func (w *watchers) told(d time.Duration) string {
	seconds := d.Seconds()
	return fmt.Sprintf("all together were sent %.0f KB/s, in %.1f changes/s, and had to load their pages anew %d times",
		float64(w.bytes.Load())/seconds/1000, float64(w.changes.Load())/seconds, w.reloads.Load())
}
